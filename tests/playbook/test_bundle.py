"""A bundle holds what others need of a run, and no text of a message unless it is asked for."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from pathlib import Path

import apsw
import msgspec
import pytest
from tests.playbook.conftest import Yes, run
from tests.playbook.test_runner import HEAD

from statemend.errors import Refused, UsageError
from statemend.playbook.bundle import LIST, pack
from statemend.playbook.withheld import Why

MARKER = "xyzzy-plugh-7f3a"
RUN = (
    HEAD
    + """
  - {id: before, do: scan}
  - {do: plan}
  - {do: export, at_risk: true}
  - {id: fix, do: plan, recipes: [rebuild-session]}
  - {id: rehearsed, do: rehearse, plan: fix}
  - {do: apply, plan: fix}
  - {id: prove, do: verify}
  - {do: snapshot}
  - {id: aged, do: export, older_than: 0}
  - {id: proven, do: verify}
  - {do: cleanup, older_than: 0}
  - {do: report, formats: [html, md, json, sarif, junit, jsonl, summary], needs: [before]}
"""
)


def _mark(home: Path) -> None:
    """Put the marker into every text of every message, and into every system prompt."""
    connection = apsw.Connection(str(home / "state.db"))
    connection.execute(
        f"UPDATE messages SET content = content || ' {MARKER}' WHERE typeof(content) = 'text';"
        f"UPDATE sessions SET system_prompt = coalesce(system_prompt, '') || '{MARKER}'"
    )
    connection.close()


def _unpacked(bundle: Path) -> bytes:
    return gzip.decompress(bundle.read_bytes())


def test_the_marker_of_the_messages_is_not_in_the_bundle(home: Path, tmp_path: Path) -> None:
    _mark(home)
    done = run(RUN, home, operator=Yes())
    states = {step.id: step.state.value for step in done.steps}
    assert set(states.values()) == {"passed"}, done.steps
    folder = Path(done.folder)
    held = [path for path in folder.rglob("*") if path.is_file() and MARKER.encode() in path.read_bytes()]
    assert held, "the run itself holds the messages"
    packed = pack(folder, tmp_path / "b.tar.gz")
    assert MARKER.encode() not in _unpacked(tmp_path / "b.tar.gz")
    out = {each.path for each in packed.left_out}
    changed = {each.path for each in packed.files if each.original}
    names = {path.relative_to(folder).as_posix() for path in held}
    assert names <= out | changed
    assert {each.path for each in packed.files} | out == {
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    }
    assert all(each.reason and len(each.sha256) == 64 for each in packed.left_out)
    assert [each.path for each in packed.left_out if each.reason == Why.FOREIGN] == []
    whole = pack(folder, tmp_path / "whole.tar.gz", with_content=True)
    assert whole.left_out == ()
    assert MARKER.encode() in _unpacked(tmp_path / "whole.tar.gz")


@pytest.fixture
def small(home: Path) -> Path:
    """The folder of a run that only looked."""
    return Path(run(HEAD + "  - {do: scan}\n  - {do: plan}\n", home).folder)


def test_the_list_in_it_is_right(small: Path, tmp_path: Path) -> None:
    packed = pack(small, tmp_path / "b.tar.gz")
    assert packed.sha256 == hashlib.sha256((tmp_path / "b.tar.gz").read_bytes()).hexdigest()
    assert (tmp_path / "b.tar.gz").stat().st_mode & 0o777 == 0o600
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        members = {member.name: member for member in tar.getmembers()}
        listed = json.loads(_read(tar, f"{small.name}/{LIST}"))
        for each in listed["files"]:
            data = _read(tar, f"{small.name}/{each['path']}")
            assert (len(data), hashlib.sha256(data).hexdigest()) == (each["size"], each["sha256"])
    assert len(members) == len(listed["files"]) + 1
    assert {(each.uid, each.gid, each.uname, each.gname) for each in members.values()} == {(0, 0, "", "")}
    assert msgspec.json.decode(msgspec.json.encode(listed["left_out"])) == []


def test_a_file_that_no_run_makes_is_left_out(small: Path, tmp_path: Path) -> None:
    (small / "notes.txt").write_text(MARKER)
    (small / "copy.json").write_text(MARKER)
    packed = pack(small, tmp_path / "b.tar.gz")
    assert {each.path for each in packed.left_out} == {"notes.txt", "copy.json"}
    assert MARKER.encode() not in _unpacked(tmp_path / "b.tar.gz")


@pytest.mark.parametrize(
    "said", ['{"steps": [{"before": {"content": "' + MARKER, "[" * 100_000], ids=["cut", "deep"]
)
def test_a_plan_that_is_not_whole_is_left_out(small: Path, tmp_path: Path, said: str) -> None:
    """As a crash leaves it in the folder of an attempt."""
    broken = small / "steps" / "02-plan.2"
    broken.mkdir()
    (broken / "plan.json").write_text(said)
    packed = pack(small, tmp_path / "b.tar.gz")
    assert [(each.path, each.size) for each in packed.left_out] == [("steps/02-plan.2/plan.json", len(said))]
    assert MARKER.encode() not in _unpacked(tmp_path / "b.tar.gz")


def test_a_file_whose_name_is_no_text_is_named_with_escapes(small: Path, tmp_path: Path) -> None:
    (small / "\udcff\x1b.txt").touch()
    pack(small, tmp_path / "b.tar.gz")
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        (left,) = json.loads(_read(tar, f"{small.name}/{LIST}"))["left_out"]
    assert left["path"] == "\\udcff\x1b.txt"


def test_a_link_is_not_followed(small: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(MARKER)
    (small / "inputs.json").unlink()
    (small / "inputs.json").symlink_to(secret)
    pack(small, tmp_path / "b.tar.gz", with_content=True)
    assert MARKER.encode() not in _unpacked(tmp_path / "b.tar.gz")


def test_no_file_is_replaced_and_no_other_folder_is_packed(small: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.tar.gz"
    target.write_text("mine")
    with pytest.raises(Refused, match="is there already"):
        pack(small, target)
    assert target.read_text() == "mine"
    with pytest.raises(UsageError, match="not the folder of a run"):
        pack(tmp_path, tmp_path / "other.tar.gz")
    assert not (tmp_path / "other.tar.gz").exists()


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    member = tar.extractfile(name)
    assert member is not None
    return member.read()
