"""A story in the form that was asked for, by its name."""

from __future__ import annotations

from statemend.report import json
from statemend.report.story.model import Story


def render(story: Story, form: str) -> str:
    """``story`` as ``html``, ``md`` or ``json``."""
    if form == "html":
        from statemend.report.story import html

        return html.render(story)
    if form == "md":
        from statemend.report.story import markdown

        return markdown.render(story)
    return json.dump(story)
