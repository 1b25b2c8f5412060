"""Templates in a playbook: ``{{ name }}``, and nothing that computes.

jinja2 parses and fills them, sandboxed. Before that the parsed template is held against the little that one
may be made of: names of inputs, what is known of the run, constants, and a few filters. No statement, call,
operator, subscript or attribute beyond those gets past that, whatever the sandbox would say of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from jinja2 import nodes
    from jinja2.sandbox import SandboxedEnvironment

#: What is known of the run itself: ``{{ run.name }}`` and so on.
RUN: Final = ("folder", "name", "started")
FILTERS: Final = ("join", "lower", "trim", "upper")

#: Characters that a filled text may have, and templates that one text may hold.
_LONGEST: Final = 64 * 1024
_MOST: Final = 200
_MOST_FILTERS: Final = 5
_LONGEST_NAME: Final = 40
#: Characters that ``join`` may put between two values.
_LONGEST_BETWEEN: Final = 20


class TemplateError(ValueError):
    """A template that cannot be. ``line`` counts from 1 within the text."""

    def __init__(self, text: str, line: int = 1) -> None:
        super().__init__(text)
        self.line = line


def has_template(text: str) -> bool:
    """Whether there is anything to fill in ``text``."""
    return "{{" in text or "{%" in text or "{#" in text


def names(text: str) -> frozenset[str]:
    """The variables that ``text`` uses: names of inputs, and ``run``. Raises ``TemplateError``."""
    from jinja2 import nodes

    return (
        frozenset(name.name for name in _parsed(text).find_all(nodes.Name))
        if has_template(text)
        else frozenset()
    )


def render(text: str, variables: Mapping[str, Any]) -> Any:
    """``text`` filled with ``variables``. A text that is one template and nothing else gives the value
    itself: a number, a list, true or false. Raises ``TemplateError``, also for a variable that is not
    there."""
    from jinja2.exceptions import TemplateError as JinjaError

    if not has_template(text):
        return text
    if unknown := sorted(names(text) - variables.keys()):
        raise TemplateError(f"no input {unknown[0][:_LONGEST_NAME]!r}")
    try:
        if (whole := _whole(text.strip())) is not None:
            return _environment().compile_expression(whole)(variables)
        return _joined(_environment().from_string(text).generate(variables))
    except TemplateError:
        raise
    except JinjaError as error:
        raise TemplateError(_one_line(error)) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise TemplateError("it cannot be filled; check what the filter is given") from error


def _joined(parts: Iterator[str]) -> str:
    kept: list[str] = []
    length = 0
    for part in parts:
        kept.append(part)
        length += len(part)
        if length > _LONGEST:
            raise TemplateError(f"filled, it is longer than {_LONGEST >> 10} KiB")
    return "".join(kept)


def _whole(text: str) -> str | None:
    """The expression, if ``text`` is nothing else."""
    from jinja2 import nodes

    outputs = [one for part in _parsed(text).body if isinstance(part, nodes.Output) for one in part.nodes]
    alone = len(outputs) == 1 and not isinstance(outputs[0], nodes.TemplateData)
    plain = text.startswith("{{") and text.endswith("}}") and not {text[2], text[-3]} & {"-", "+"}
    return text[2:-2] if alone and plain else None


@lru_cache(maxsize=256)
def _parsed(text: str) -> nodes.Template:
    from jinja2.exceptions import TemplateSyntaxError

    if text.count("{{") > _MOST:
        raise TemplateError(f"more than {_MOST} templates in one text")
    try:
        tree = _environment().parse(text)
        _check(tree)
    except TemplateSyntaxError as error:
        raise TemplateError(_one_line(error), error.lineno) from error
    except (RecursionError, ValueError) as error:
        if isinstance(error, TemplateError):
            raise
        raise TemplateError("a template that is no template; write {{ name }}") from error
    return tree


def _check(tree: nodes.Template) -> None:
    from jinja2 import nodes

    for part in tree.body:
        if not isinstance(part, nodes.Output):
            raise TemplateError("a statement; a template only names an input, as {{ name }}", part.lineno)
        for node in part.nodes:
            if not isinstance(node, nodes.TemplateData):
                _check_expression(node, 0)


def _check_expression(node: nodes.Expr, filters: int) -> None:
    from jinja2 import nodes

    if isinstance(node, nodes.Filter) and node.node is not None:
        if filters == _MOST_FILTERS:
            raise TemplateError(f"more than {_MOST_FILTERS} filters", node.lineno)
        if node.name not in FILTERS:
            named = node.name[:_LONGEST_NAME]
            raise TemplateError(f"no filter {named!r}; there are {', '.join(FILTERS)}", node.lineno)
        constant = all(isinstance(one, nodes.Const) for one in node.args)
        if not constant or node.kwargs or node.dyn_args or node.dyn_kwargs:
            raise TemplateError(f"the filter {node.name} takes constants alone", node.lineno)
        if node.name == "join":
            _check_join(node)
        _check_expression(node.node, filters + 1)
    elif isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name == "run":
        if node.attr not in RUN:
            known = ", ".join(f"run.{name}" for name in RUN)
            raise TemplateError(f"no run.{node.attr[:_LONGEST_NAME]}; there are {known}", node.lineno)
    elif isinstance(node, nodes.Name):
        if node.name == "run":
            raise TemplateError("`run` alone is no value; write run.name", node.lineno)
    elif not isinstance(node, nodes.Const):
        raise TemplateError("it computes; a template only names an input, as {{ name }}", node.lineno)


def _check_join(node: nodes.Filter) -> None:
    """What it makes is as long as the product of what it is given: so that is an input, and a few
    characters."""
    from jinja2 import nodes

    if not isinstance(node.node, nodes.Name):
        raise TemplateError("the filter join comes first after the name of an input", node.lineno)
    between = "".join(str(one.value) for one in node.args if isinstance(one, nodes.Const))
    if len(node.args) > 1 or len(between) > _LONGEST_BETWEEN:
        raise TemplateError(f"join takes one text of at most {_LONGEST_BETWEEN} characters", node.lineno)


@lru_cache(maxsize=1)
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.sandbox import SandboxedEnvironment

    environment = SandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, finalize=_written
    )
    environment.globals.clear()
    environment.tests.clear()
    environment.filters = {name: environment.filters[name] for name in FILTERS}
    return environment


def _written(value: Any) -> Any:
    """How a value stands within a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else value


def _one_line(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", None) or error).split())[:200]
