"""A conversation with a real agent of the release."""

from __future__ import annotations

import datetime
import importlib
import inspect
import sys
import threading
import types
from typing import Any


class Chat:
    """One conversation as a person has it: the agent, the command line around it, the messages in memory."""

    summary = "They worked through the earlier questions; every one of them was answered."

    def __init__(self, agent: Any, store: Any, history: list[dict[str, Any]]) -> None:
        self.agent = agent
        self.store = store
        self.history = history
        self.baseline: list[dict[str, Any]] | None = list(history)

    @classmethod
    def open(cls, store: Any, session_id: str, platform: str, resume: bool) -> Chat:
        run_agent = importlib.import_module("run_agent")
        settings = {
            "base_url": "https://provider.invalid/v1",
            "api_key": "none",
            "provider": "custom",
            "model": "gpt-4o",
            "session_db": store,
            "session_id": session_id,
            "platform": platform,
            "quiet_mode": True,
            "enabled_toolsets": [],
            "skip_context_files": True,
            "skip_memory": True,
        }
        agent = run_agent.AIAgent(**settings)
        history = store.get_messages_as_conversation(session_id) if resume else []
        if resume:
            agent._last_flushed_db_idx = len(history)
        return cls(agent, store, history)

    def persist(self) -> None:
        logging = importlib.import_module("hermes_logging")
        logging.set_session_context(self.agent.session_id)
        self.agent._persist_session(self.history, self.baseline)
        getattr(logging, "flush_log_queue", lambda: None)()  # newer releases write logs on another thread

    def say(self, messages: list[dict[str, Any]]) -> str:
        self.history.extend(messages)
        self.persist()
        return self.agent.session_id

    def count_tokens(self) -> None:
        """What the agent loop notes after each answer of the provider; newer releases note it on another
        thread, and have done so when the turn ends."""
        note = getattr(self.store, "queue_token_counts", self.store.update_token_counts)
        note(
            self.agent.session_id,
            input_tokens=900,
            output_tokens=90,
            model=self.agent.model,
            billing_provider=self.agent.provider,
            billing_base_url=self.agent.base_url,
            api_call_count=1,
        )
        getattr(self.store, "flush_token_counts", lambda: None)()

    def compact(self, in_place: bool) -> str:
        compressor_module = importlib.import_module("agent.context_compressor")
        compressor_module.call_llm = self._answer
        compressor = self.agent.context_compressor
        compressor.protect_last_n = 4
        compressor.tail_token_budget = 60
        self.agent.compression_in_place = in_place
        options: dict[str, Any] = {"approx_tokens": 100_000}
        if "force" in inspect.signature(self.agent._compress_context).parameters:
            options["force"] = True
        self.history, _ = self.agent._compress_context(self.history, "", **options)
        compression = sys.modules.get("agent.conversation_compression")
        after = getattr(compression, "conversation_history_after_compression", lambda *_: None)
        self.baseline = after(self.agent, self.history)
        self.persist()
        return self.agent.session_id

    def prune(self) -> int:
        """Shorten old tool results ahead of time, as a setting makes the agent do; how many were."""
        compressor = self.agent.context_compressor
        compressor.protect_last_n = 4
        compressor.proactive_prune_tokens = 50
        compressor.proactive_prune_min_reclaim_tokens = 0
        compressor._proactive_prune_rearm_tokens = 0
        compressor._session_db, compressor._session_id = self.store, self.agent.session_id
        self.history, pruned = compressor.prune_tool_results_only(self.history)
        self.persist()
        return pruned

    def _answer(self, *_: Any, **__: Any) -> Any:
        message = types.SimpleNamespace(content=self.summary, reasoning=None, tool_calls=None)
        choice = types.SimpleNamespace(message=message, finish_reason="stop")
        return types.SimpleNamespace(choices=[choice], usage=None, model="gpt-4o")

    def command(self, name: str, *arguments: Any) -> str:
        """A slash command of the interactive shell, run by the release's own handler."""
        shell_class = importlib.import_module("cli").HermesCLI
        shell = shell_class.__new__(shell_class)
        vars(shell).update(
            agent=self.agent,
            session_id=self.agent.session_id,
            session_start=datetime.datetime.now(),
            conversation_history=self.history,
            model=self.agent.model,
            max_turns=20,
            reasoning_config=None,
            _session_db=self.store,
            _pending_title=None,
            _resumed=False,
        )
        getattr(shell, name)(*arguments)
        self.history = shell.conversation_history
        self.baseline = list(self.history)
        self.agent._last_flushed_db_idx = len(self.history)
        self.agent.session_id = shell.session_id
        return shell.session_id

    def delegate(self, goal: str) -> Chat:
        tool = importlib.import_module("tools.delegate_tool")
        child = tool._build_child_agent(
            task_index=0,
            goal=goal,
            context=None,
            toolsets=None,
            model=None,
            max_iterations=5,
            task_count=1,
            parent_agent=self.agent,
        )
        return Chat(child, self.store, [])

    def dispatch(self, goal: str) -> str:
        """A subagent in the background: its work is not done here, its account in the store is."""
        background = importlib.import_module("tools.async_delegation")
        given = background.dispatch_async_delegation(
            goal=goal,
            context=None,
            toolsets=None,
            role="leaf",
            model=None,
            session_key="",
            parent_session_id=self.agent.session_id,
            runner=lambda: {"status": "completed", "summary": "Done.", "api_calls": 1},
        )
        named = given["delegation_id"]
        for _ in range(500):
            if background.get_durable_delegation(named)["state"] not in ("running", "finalizing"):
                break
            threading.Event().wait(0.01)
        background.mark_completion_delivered(named)
        return named

    def close(self) -> None:
        self.agent.close()
