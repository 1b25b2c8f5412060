"""Templates in a playbook: ``{{ name }}`` and nothing that computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment


def render(value: Any, variables: Mapping[str, Any]) -> Any:
    """``value`` with every template in it filled."""
    if isinstance(value, dict):
        return {key: render(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [render(item, variables) for item in value]
    if not isinstance(value, str) or "{{" not in value:
        return value
    whole = value.strip()
    if whole.startswith("{{") and whole.endswith("}}") and whole.count("{{") == 1:
        name = whole[2:-2].strip()
        if name in variables:
            return variables[name]
    try:
        return SandboxedEnvironment(undefined=StrictUndefined).from_string(value).render(variables)
    except TemplateError as error:
        raise ValueError(str(error)) from error
