"""Which stores a home has: its own and those of its profiles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from statemend.errors import UsageError
from statemend.evidence.inventory import Home
from statemend.evidence.profiles import find_homes


def store(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "state.db"
    path.write_bytes(b"SQLite format 3\0" + str(folder).encode())
    return path


def names(root: Path) -> list[str]:
    return [os.path.relpath(home.root, root) for home in find_homes(root).homes]


def test_a_home_has_its_own_store_first_and_then_those_of_its_profiles_by_name(tmp_path: Path) -> None:
    store(tmp_path)
    store(tmp_path / "profiles" / "b")
    store(tmp_path / "profiles" / "a")
    (tmp_path / "profiles" / "new").mkdir()
    (tmp_path / "profiles" / "notes.txt").touch()

    found = find_homes(tmp_path)

    assert names(tmp_path) == [".", "profiles/a", "profiles/b"]
    assert (found.whole, found.skipped) == (True, ())
    assert [home.profile for home in found.homes] == ["default", "a", "b"]
    assert [home.place for home in found.homes] == ["", "profiles/a", "profiles/b"]


@pytest.mark.parametrize("named", ["profiles/a", "profiles/a/state.db", "state.db"])
def test_a_profile_or_a_store_that_is_named_alone_is_alone(tmp_path: Path, named: str) -> None:
    store(tmp_path)
    store(tmp_path / "profiles" / "a")

    found = find_homes(tmp_path / named)

    assert (len(found.homes), found.whole) == (1, False)


def test_profiles_need_no_store_around_them(tmp_path: Path) -> None:
    store(tmp_path / "profiles" / "a")

    assert names(tmp_path) == ["profiles/a"]


def test_a_folder_without_any_store_is_no_home(tmp_path: Path) -> None:
    (tmp_path / "profiles" / "a").mkdir(parents=True)

    with pytest.raises(UsageError, match=r"no state\.db"):
        find_homes(tmp_path)


def test_one_file_is_one_store_however_often_it_is_named(tmp_path: Path) -> None:
    own = store(tmp_path)
    (tmp_path / "profiles" / "a").mkdir(parents=True)
    (tmp_path / "profiles" / "a" / "state.db").symlink_to(own)
    (tmp_path / "profiles" / "b").mkdir()
    os.link(own, tmp_path / "profiles" / "b" / "state.db")

    found = find_homes(tmp_path)

    assert [home.root for home in found.homes] == [str(tmp_path)]
    assert {skipped.reason for skipped in found.skipped} == {f"the same file as {own}"}
    assert not any(skipped.unread for skipped in found.skipped)


def test_no_link_is_followed_out_of_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store(home)
    store(tmp_path / "elsewhere")
    (home / "profiles").mkdir()
    (home / "profiles" / "a").symlink_to(tmp_path / "elsewhere")
    (home / "profiles" / "gone").symlink_to(tmp_path / "nowhere")
    store(home / "profiles" / ".deleted")

    found = find_homes(home)

    assert names(home) == ["."]
    assert [(Path(each.path).name, each.unread) for each in found.skipped] == [
        (".deleted", False),
        ("a", False),
    ]
    assert "leads out" in found.skipped[1].reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_looked_into_is_not_passed_over(tmp_path: Path) -> None:
    store(tmp_path)
    closed = store(tmp_path / "profiles" / "a").parent
    closed.chmod(0)
    try:
        assert names(tmp_path) == [".", "profiles/a"]
        closed.parent.chmod(0)
        (skipped,) = find_homes(tmp_path).skipped
        assert skipped.unread
    finally:
        closed.parent.chmod(0o700)
        closed.chmod(0o700)


def test_what_a_home_is_called_does_not_make_it_a_profile(tmp_path: Path) -> None:
    assert Home(str(tmp_path), str(tmp_path / "state.db")).profile is None
    assert Home(str(tmp_path / "work"), "state.db").place == ""
