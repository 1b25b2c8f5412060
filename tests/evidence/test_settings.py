from __future__ import annotations

from pathlib import Path

import pytest

from statemend.evidence.inventory import Home, take
from statemend.evidence.settings import Settings, read_settings


def written(folder: Path, content: bytes) -> Settings:
    (folder / "config.yaml").write_bytes(content)
    return read_settings(folder)


def test_no_configuration_sets_nothing(tmp_path: Path) -> None:
    assert read_settings(tmp_path) == Settings(None, None, "no config.yaml")


@pytest.mark.parametrize(
    ("content", "auto_prune", "days"),
    [
        (b"sessions:\n  auto_prune: true\n  retention_days: 30\n", True, 30.0),
        (b"\xef\xbb\xbfsessions:\r\n  auto_prune: 'off'\r\n", True, None),
        (b"sessions: {auto_prune: maybe, retention_days: '30'}", True, 30.0),
        (b"sessions: {auto_prune: null, retention_days: 7.5}", False, 7.0),
        (b"sessions: {auto_prune: 0}", False, None),
        ("sessions:\n  retention_days: 7.5\n".encode("utf-16"), None, 7.0),
        (b"sessions:\n", None, None),
        (b"- a\n", None, None),
        (b"", None, None),
    ],
)
def test_what_is_set_is_read(
    tmp_path: Path, content: bytes, auto_prune: bool | None, days: float | None
) -> None:
    settings = written(tmp_path, content)
    assert (settings.auto_prune, settings.retention_days) == (auto_prune, days)
    assert settings.source.startswith("config.yaml")
    assert settings.trouble is None


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"sessions: {auto_prune: true, retention_days: .nan}", "retention_days is no number"),
        (b"sessions: {auto_prune: true, retention_days: {a: b}}", "retention_days is no number"),
        (b"sessions: {auto_prune: true, retention_days: null}", "retention_days is no number"),
        (b"sessions: {auto_prune: true, min_interval_hours: soon}", "min_interval_hours is no number"),
        (b"a: &a [*a]\nsessions: *a\n", "no mapping"),
        (b"sessions: 3\n", "no mapping"),
    ],
)
def test_what_makes_pruning_fail_turns_it_off(tmp_path: Path, content: bytes, told: str) -> None:
    settings = written(tmp_path, content)
    assert settings.auto_prune is False
    assert told in settings.source
    assert settings.trouble is None


@pytest.mark.parametrize(
    "content",
    [
        b"\tsessions: [\n",
        b"[" * 20_000,
        b"!!python/object/apply:os.getcwd []",
        b"sessions: {auto_prune: !!bool perhaps}",
        b"sessions: {retention_days: !!int ''}",
        b"sessions: {retention_days: !!timestamp soon}",
        b"sessions: {retention_days: %s}" % (b"9" * 5000),
        b"sessions: 2001-99-99",
        b"{[a]: b, {c: d}: e}",
        b"a: b\n---\nc: d\n",
        b"\x80\x81\x82",
        b"\0" * 100,
    ],
)
def test_what_is_no_configuration_is_said_and_sets_nothing(tmp_path: Path, content: bytes) -> None:
    settings = written(tmp_path, content)
    assert (settings.auto_prune, settings.retention_days) == (None, None)
    assert settings.trouble is not None
    assert settings.trouble.startswith("not valid YAML")
    assert not settings.unread

    (skipped,) = take(Home(str(tmp_path), str(tmp_path / "state.db"))).skipped
    assert (skipped.path, skipped.reason, skipped.unread) == (
        str(tmp_path / "config.yaml"),
        settings.trouble,
        False,
    )


def test_what_cannot_be_read_leaves_the_settings_open(tmp_path: Path) -> None:
    folder = tmp_path / "config.yaml"
    folder.mkdir()
    assert read_settings(tmp_path).unread
    folder.rmdir()
    (tmp_path / "config.yaml").symlink_to("config.yaml")
    assert "could not be read" in read_settings(tmp_path).source
    (skipped,) = take(Home(str(tmp_path), str(tmp_path / "state.db"))).skipped
    assert skipped.unread


def test_a_configuration_of_absurd_size_is_not_parsed(tmp_path: Path) -> None:
    settings = written(tmp_path, b"a: 1\n" * 100_000)
    assert settings.unread
    assert settings.trouble == "too large to be a configuration (500,000 bytes)"
