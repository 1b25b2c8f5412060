"""The sample reports in ``reports/`` are what the demo gives now."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec
import pytest
from reports.build import HERE, sample_reports

from statemend.demo.build import AUDITED_AT


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(int(AUDITED_AT)))
        return sample_reports()


@pytest.mark.parametrize("name", ["demo.html", "demo.md", "demo.json", "demo.txt"])
def test_sample_is_fresh(made: dict[str, str], name: str) -> None:
    kept = (HERE / name).read_text(encoding="utf-8")
    recorded = msgspec.json.decode((HERE / "demo.json").read_bytes())["tool"]["sqlite"]
    now = made[name].replace(apsw.sqlite_lib_version(), recorded)
    assert now == kept, f"reports/{name} is stale: run `make reports`"


def test_samples_name_no_place_of_the_machine(made: dict[str, str]) -> None:
    for name, text in made.items():
        assert str(Path.home()) not in text, name
        assert "/tmp" not in text, name
