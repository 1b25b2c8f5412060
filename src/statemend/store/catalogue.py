"""The newest known shape of every table, and the release that each table and column first appears in.

Derived from stores that the releases made, and for the tables that appear only on first use from what the
releases create then. Columns are in the order in which the newest release lays them out; a store that was
upgraded from release to release has them in another order, so nothing may rely on positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

#: The releases whose stores are known, oldest first. ``since`` always names one of these.
RELEASES = ("0.13.0", "0.14.0", "0.15.2", "0.16.0", "0.17.0", "0.18.2", "0.19.0", "0.20.1", "0.22.2")

#: What each release writes into ``schema_version``. The number says what migrations ran, not what columns
#: exist.
SCHEMA_NUMBERS: Mapping[str, int] = MappingProxyType(
    {
        "0.13.0": 11,
        "0.14.0": 11,
        "0.15.2": 13,
        "0.16.0": 14,
        "0.17.0": 16,
        "0.18.2": 19,
        "0.19.0": 22,
        "0.20.1": 26,
        "0.22.2": 31,
    }
)


class Column(msgspec.Struct, frozen=True):
    """One canonical column. ``default`` is an SQL literal, or ``None`` where the default is NULL."""

    name: str
    type: str
    since: str
    default: str | None = None


class Table(msgspec.Struct, frozen=True):
    """One canonical table. ``on_demand`` tables exist only once a feature was used: their absence means
    nothing."""

    name: str
    since: str
    columns: tuple[Column, ...]
    on_demand: bool = False


def _table(name: str, since: str, columns: str, *, on_demand: bool = False) -> Table:
    """Read ``columns``: one a line, ``name TYPE [release] [=literal]``."""
    parsed = []
    for line in columns.strip().splitlines():
        declaration, _, default = line.partition("=")
        words = declaration.split()
        parsed.append(
            Column(
                name=words[0],
                type=words[1],
                since=words[2] if len(words) > 2 else since,
                default=default.strip() or None,
            )
        )
    return Table(name=name, since=since, columns=tuple(parsed), on_demand=on_demand)


_TABLES = (
    _table("schema_version", "0.13.0", "version INTEGER"),
    _table(
        "state_meta",
        "0.13.0",
        """
        key TEXT
        value TEXT
        """,
    ),
    _table(
        "sessions",
        "0.13.0",
        """
        id TEXT
        source TEXT
        created_source TEXT 0.22.2
        user_id TEXT
        session_key TEXT 0.18.2
        chat_id TEXT 0.18.2
        chat_type TEXT 0.18.2
        thread_id TEXT 0.18.2
        display_name TEXT 0.18.2
        origin_json TEXT 0.18.2
        expiry_finalized INTEGER 0.18.2 = 0
        model TEXT
        model_config TEXT
        system_prompt TEXT
        system_prompt_hash TEXT 0.20.1
        parent_session_id TEXT
        started_at REAL
        ended_at REAL
        end_reason TEXT
        message_count INTEGER = 0
        tool_call_count INTEGER = 0
        input_tokens INTEGER = 0
        output_tokens INTEGER = 0
        cache_read_tokens INTEGER = 0
        cache_write_tokens INTEGER = 0
        reasoning_tokens INTEGER = 0
        cwd TEXT 0.16.0
        git_branch TEXT 0.18.2
        git_repo_root TEXT 0.18.2
        git_metadata_generation INTEGER 0.20.1 = 0
        billing_provider TEXT
        billing_base_url TEXT
        billing_mode TEXT
        estimated_cost_usd REAL
        actual_cost_usd REAL
        cost_status TEXT
        cost_source TEXT
        pricing_version TEXT
        title TEXT
        title_source TEXT 0.20.1
        last_activity_at REAL 0.20.1
        last_activity_description TEXT 0.20.1
        last_activity_provenance TEXT 0.20.1
        api_call_count INTEGER = 0
        handoff_state TEXT
        handoff_platform TEXT
        handoff_error TEXT
        compression_failure_cooldown_until REAL 0.18.2
        compression_failure_error TEXT 0.18.2
        compression_fallback_streak INTEGER 0.19.0 = 0
        compression_ineffective_count INTEGER 0.20.1 = 0
        compression_recovery_deadline REAL 0.22.2
        compression_overload_streak INTEGER 0.22.2 = 0
        profile_name TEXT 0.19.0
        transport_profile TEXT 0.22.2
        rewind_count INTEGER 0.16.0 = 0
        archived INTEGER 0.16.0 = 0
        auto_archived INTEGER 0.22.2 = 0
        pinned INTEGER 0.20.1 = 0
        hidden INTEGER 0.20.1 = 0
        last_read_at REAL 0.20.1
        tool_names TEXT 0.22.2
        """,
    ),
    _table(
        "messages",
        "0.13.0",
        """
        id INTEGER
        session_id TEXT
        role TEXT
        content TEXT
        tool_call_id TEXT
        tool_calls TEXT
        tool_name TEXT
        effect_disposition TEXT 0.19.0
        timestamp REAL
        token_count INTEGER
        finish_reason TEXT
        reasoning TEXT
        reasoning_content TEXT
        reasoning_details TEXT
        codex_reasoning_items TEXT
        codex_message_items TEXT
        platform_message_id TEXT 0.15.2
        observed INTEGER 0.15.2 = 0
        _compressed_summary INTEGER 0.22.2 = 0
        active INTEGER 0.16.0 = 1
        compacted INTEGER 0.18.2 = 0
        api_content TEXT 0.19.0
        display_kind TEXT 0.20.1
        display_metadata TEXT 0.20.1
        display_identity BLOB 0.22.2
        display_order INTEGER 0.22.2
        message_uid TEXT 0.22.2
        absorbed_message_uids TEXT 0.22.2
        tool_call_uids TEXT 0.22.2
        tool_call_uid TEXT 0.22.2
        """,
    ),
    _table(
        "system_prompts",
        "0.20.1",
        """
        hash TEXT
        prompt TEXT
        """,
    ),
    _table(
        "session_model_usage",
        "0.19.0",
        """
        session_id TEXT
        model TEXT
        billing_provider TEXT = ''
        billing_base_url TEXT = ''
        billing_mode TEXT = ''
        task TEXT = ''
        api_call_count INTEGER = 0
        input_tokens INTEGER = 0
        output_tokens INTEGER = 0
        cache_read_tokens INTEGER = 0
        cache_write_tokens INTEGER = 0
        reasoning_tokens INTEGER = 0
        estimated_cost_usd REAL = 0
        actual_cost_usd REAL = 0
        cost_status TEXT
        cost_source TEXT
        first_seen REAL
        last_seen REAL
        """,
    ),
    _table(
        "compression_locks",
        "0.16.0",
        """
        session_id TEXT
        holder TEXT
        acquired_at REAL
        expires_at REAL
        """,
    ),
    _table(
        "session_turn_leases",
        "0.20.1",
        """
        conversation_id TEXT
        holder TEXT
        acquired_at REAL
        expires_at REAL
        """,
    ),
    _table(
        "gateway_routing",
        "0.18.2",
        """
        scope TEXT = ''
        session_key TEXT
        entry_json TEXT
        updated_at REAL
        """,
    ),
    _table(
        "gateway_hygiene_state",
        "0.20.1",
        """
        session_key TEXT
        failure_streak INTEGER = 0
        """,
    ),
    _table(
        "conversation_generations",
        "0.22.2",
        """
        source TEXT
        session_key TEXT
        generation INTEGER = 0
        """,
    ),
    _table(
        "gateway_heartbeats",
        "0.22.2",
        """
        backend_id TEXT
        pid INTEGER
        started_at REAL
        last_heartbeat REAL
        profile TEXT = ''
        host TEXT = ''
        """,
    ),
    _table(
        "async_delegations",
        "0.19.0",
        """
        delegation_id TEXT
        origin_session TEXT
        origin_ui_session_id TEXT = ''
        parent_session_id TEXT
        state TEXT
        dispatched_at REAL
        completed_at REAL
        updated_at REAL
        event_json TEXT
        result_json TEXT
        delivery_state TEXT = 'pending'
        delivery_attempts INTEGER = 0
        delivered_at REAL
        owner_pid INTEGER
        owner_started_at INTEGER
        task_json TEXT
        delivery_claim TEXT
        delivery_claimed_at REAL
        origin_session_id TEXT 0.22.2 = ''
        """,
    ),
    _table(
        "delivery_obligations",
        "0.19.0",
        """
        obligation_id TEXT
        session_key TEXT
        platform TEXT
        chat_id TEXT
        thread_id TEXT
        content TEXT
        state TEXT
        attempts INTEGER = 0
        created_at REAL
        updated_at REAL
        owner_pid INTEGER
        owner_started_at INTEGER
        last_error TEXT
        adapter_profile TEXT 0.22.2
        """,
        on_demand=True,
    ),
    _table(
        "telegram_dm_topic_mode",
        "0.13.0",
        """
        profile_name TEXT 0.22.2 = 'default'
        chat_id TEXT
        user_id TEXT
        enabled INTEGER = 1
        activated_at REAL
        updated_at REAL
        has_topics_enabled INTEGER
        allows_users_to_create_topics INTEGER
        capability_checked_at REAL
        intro_message_id TEXT
        pinned_message_id TEXT
        """,
        on_demand=True,
    ),
    _table(
        "telegram_dm_topic_bindings",
        "0.13.0",
        """
        profile_name TEXT 0.22.2 = 'default'
        chat_id TEXT
        thread_id TEXT
        user_id TEXT
        session_key TEXT
        session_id TEXT
        managed_mode TEXT = 'auto'
        linked_at REAL
        updated_at REAL
        """,
        on_demand=True,
    ),
)

CATALOGUE: Mapping[str, Table] = MappingProxyType({table.name: table for table in _TABLES})


def expected(release: str) -> dict[str, frozenset[str]]:
    """The tables and columns that a store of ``release`` has at least, without those made on demand."""
    known = RELEASES[: RELEASES.index(release) + 1]
    return {
        table.name: frozenset(column.name for column in table.columns if column.since in known)
        for table in _TABLES
        if table.since in known and not table.on_demand
    }
