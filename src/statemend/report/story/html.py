"""A story as one HTML page: no request, no script, readable in print."""

from __future__ import annotations

from statemend.report.html import environment, policy, source
from statemend.report.story.model import Story

#: Entries of one kind that are written out; the JSON form has every one.
MOST = 300


def render(story: Story) -> str:
    """The whole page."""
    style = source("report.css").strip() + "\n" + source("story.css").strip()
    template = environment().get_template("story.html")
    return template.render(story=story, style=style, policy=policy(style), most=MOST) + "\n"
