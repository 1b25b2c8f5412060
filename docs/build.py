"""Write the generated pages anew: ``python -m docs.build`` (``make docs``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs import format_page, playbook_page, rule_page

HERE = Path(__file__).parent

#: File name to what gives its text. Every other page is written by hand.
PAGES: dict[str, Callable[[], str]] = {
    "rules.md": rule_page.render,
    "playbooks.md": playbook_page.render,
    "formats.md": format_page.render,
}


def main() -> None:
    for name, render in PAGES.items():
        (HERE / name).write_text(render(), encoding="utf-8")
        print(HERE / name)


if __name__ == "__main__":
    main()
