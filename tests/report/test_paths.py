from __future__ import annotations

import pytest

from statemend.report.paths import relative, within


@pytest.mark.parametrize(
    ("path", "folder", "rest"),
    [
        ("/a/b/c", "/a/b", "c"),
        ("/a/b/c", "/a/b/", "c"),
        ("/a/b", "/a/b", "."),
        ("/a/b/../b/c", "/a/b", "c"),
        ("/c", "/", "c"),
        ("home/x", "home", "x"),
        ("./home/x", "home/", "x"),
        ("x/y", ".", "x/y"),
        ("/a/bc", "/a/b", None),
        ("/a", "/a/b", None),
        ("/a/b/../c", "/a/b", None),
        ("/x", ".", None),
        ("../x", ".", None),
        ("home", "/home", None),
    ],
)
def test_what_lies_below_a_folder_is_told_by_name(path: str, folder: str, rest: str | None) -> None:
    assert within(path, folder) is (rest is not None)
    if rest is not None:
        assert relative(path, folder) == rest
