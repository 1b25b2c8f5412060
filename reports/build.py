"""Make the sample reports anew: ``python -m reports.build`` (``make reports``).

A fresh demo home is audited as of the demo's own date, so the result depends on the code alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from statemend.demo.build import AUDITED_AT, build
from statemend.report import html, json, markdown, table
from statemend.report.produce import produce

HERE = Path(__file__).parent
HOME = Path("demo-home")


def sample_reports() -> dict[str, str]:
    """File name to text of every sample report, made now."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # paths in a report are shown as given: keep them short and the same everywhere
        try:
            build(HOME)
            report = produce(HOME, now=AUDITED_AT)
        finally:
            os.chdir(before)
    return {
        "demo.html": html.render(report),
        "demo.md": markdown.render(report),
        "demo.json": json.render(report),
        "demo.txt": table.render(report),
    }


def main() -> None:
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(int(AUDITED_AT)))
    for name, text in sample_reports().items():
        (HERE / name).write_text(text, encoding="utf-8")
        print(HERE / name)


if __name__ == "__main__":
    sys.exit(main())
