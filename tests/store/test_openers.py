"""Few places open a database, and each of them is known."""

from __future__ import annotations

import ast
from pathlib import Path

import statemend

ROOT = Path(statemend.__file__).parent
#: Who opens a database. Only ``writing`` and ``snapshot`` open one that is not their own for writing.
OPENERS = {
    "demo/writer.py",
    "store/connection.py",
    "store/snapshot.py",
    "store/writing.py",
}
_CALLS = {"Connection", "AsyncConnection", "connect_async", "connect", "as_async"}


def opens(source: str) -> bool:
    """Whether a module makes a connection through apsw, or a class of them, under whatever name it imports
    it."""
    tree = ast.parse(source)
    names = {"apsw"}
    made = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {
                alias.asname or alias.name for alias in node.names if alias.name.split(".")[0] == "apsw"
            }
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "apsw":
            made |= {alias.asname or alias.name for alias in node.names if alias.name in _CALLS}
    used = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    used += [base for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for base in node.bases]
    for called in used:
        if isinstance(called, ast.Name) and called.id in made:
            return True
        if (
            isinstance(called, ast.Attribute)
            and called.attr in _CALLS
            and isinstance(called.value, ast.Name)
            and called.value.id in names
        ):
            return True
    return False


def test_only_known_modules_open_a_database() -> None:
    found = {
        str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if opens(path.read_text(encoding="utf-8"))
    }
    assert found == OPENERS


def test_no_recipe_makes_sql_or_a_deletion_of_history() -> None:
    for path in (ROOT / "repair" / "recipes").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        imported = {
            name
            for node in ast.walk(tree)
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
        }
        assert not {name for name in imported if name.split(".")[0] in ("apsw", "sqlite3")}, path.name
        assert "statemend.store.writing" not in imported, path.name
        texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        words = [text.split() for text in texts if isinstance(text, str)]
        assert not [text for text in words if text[:2] in (["DELETE", "FROM"], ["INSERT", "INTO"])], path.name


def test_the_check_sees_an_opener_under_another_name() -> None:
    assert opens("import apsw as a\nx = a.Connection('f')")
    assert opens("from apsw import Connection as C\nx = C('f')")
    assert opens("import apsw\nclass C(apsw.Connection): ...")
    assert not opens("import apsw\ndef f(c: apsw.Connection) -> None: ...")
