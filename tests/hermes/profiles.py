"""Profiles of a home: made, served and copied, and what lies in their stores."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.hermes.home import MINUTE, HermesHome


def with_profile(home: HermesHome, name: str, *options: str) -> Path:
    """Have the release create a profile; its folder."""
    done = home.hermes("profile", "create", name, *options)
    assert done.code == 0, done.said
    return home.path / "profiles" / name


def served(home: HermesHome, profile: str | None, chat: str) -> str:
    """The session that a gateway of several profiles has for a chat."""
    home.advance(MINUTE)
    return home.process.call("function", module="driver_profiles", name="chat_of", args=[profile, chat])


def served_once(home: HermesHome, profile: str, chat: str) -> str:
    """The same of a gateway that ends then."""
    session = served(home, profile, chat)
    home.process.call("function", module="driver_profiles", name="leave", args=[])
    return session


def in_store(home: HermesHome, store: Path, method: str, *args: Any, **options: Any) -> Any:
    """``SessionDB(store).method(*args, **options)`` of the release that runs on the home."""
    call = {"method": method, "args": list(args), "options": options}
    return home.process.call("store", path=str(store), **call)


def move(source: Path, target: Path, session_id: str) -> None:
    """Move one session's rows as a tool does that knows nothing of lineage, with foreign keys off."""
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("ATTACH ? AS other", (str(source),))
        with connection:
            for table, column in (("sessions", "id"), ("messages", "session_id")):
                names = [row[1] for row in connection.execute(f"PRAGMA main.table_info('{table}')")]
                kept = ", ".join(name for name in names if (table, name) != ("messages", "id"))
                connection.execute(
                    f"INSERT INTO main.{table} ({kept}) SELECT {kept} FROM other.{table} WHERE {column} = ?",
                    (session_id,),
                )
                connection.execute(f"DELETE FROM other.{table} WHERE {column} = ?", (session_id,))
