"""A store on disk, judged by its bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.store.folders import changed, copied, crashed, filled, flip

from statemend.errors import Undetermined, UsageError
from statemend.store.bundle import Bundle, fingerprint, inspect
from statemend.store.catalogue import RELEASES

Stores = Mapping[str, Path]

#: A page of 4096 bytes that begins as a leaf of a table does.
LEAF = struct.pack(">BHHHB", 0x0D, 0, 1, 4000, 0).ljust(4096, b"\0")


@pytest.fixture
def store(stores: Stores, tmp_path: Path) -> Path:
    return copied(stores["0.19.0"], tmp_path)


@pytest.mark.parametrize("version", RELEASES)
def test_a_sound_store_has_a_header_and_no_fault(stores: Stores, version: str) -> None:
    bundle = inspect(stores[version])

    assert bundle.fault is None
    assert bundle.header is not None
    assert bundle.header.page_size * bundle.header.page_count == bundle.main.size
    assert bundle.header.journal == ("rollback" if version in ("0.20.1", "0.22.2") else "wal")
    assert bundle.header.codec == "utf-8"
    assert (bundle.wal, bundle.shm, bundle.journal, bundle.siblings) == (None, None, None, ())


def _damaged(store: Path, damage: str) -> Bundle:
    content = store.read_bytes()
    size = len(content)
    damages = {
        "empty": b"",
        "zeroed": bytes(size),
        "first-bytes": content[:300],
        "text": b"a journal of another kind\n" * 400,
        "binary": bytes(range(1, 256)) * 100,
        "page-zeroed": bytes(4096) + content[4096:],
        "page-text": b"x" * 4096 + content[4096:],
        "magic-gone": b"\x01" * 16 + content[16:],
        "impossible-page-size": content[:16] + b"\x03\x03" + content[18:],
        "schema-root-gone": content[:100] + b"\x00" * 16 + content[116:],
        "half": content[: size // 2],
        "one-byte-short": content[:-1],
    }
    store.write_bytes(damages[damage])
    return inspect(store)


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("empty", "empty"),
        ("zeroed", "zeroed"),
        ("first-bytes", "too-short"),
        ("text", "not-sqlite"),
        ("binary", "not-sqlite"),
        ("page-zeroed", "overwritten-first-page"),
        ("page-text", "overwritten-first-page"),
        ("magic-gone", "overwritten-first-page"),
        ("impossible-page-size", "overwritten-first-page"),
        ("schema-root-gone", "overwritten-first-page"),
        ("half", "page-count"),
        ("one-byte-short", "page-count"),
    ],
)
def test_each_damage_has_its_name(store: Path, damage: str, fault: str) -> None:
    bundle = _damaged(store, damage)

    assert bundle.fault == fault
    assert bundle.detail
    assert "\n" not in bundle.detail


@pytest.mark.parametrize("page_size", [512, 1024, 2048, 8192, 16384, 32768, 65536])
def test_an_overwritten_first_page_is_told_at_any_page_size(tmp_path: Path, page_size: int) -> None:
    store = changed(
        tmp_path / "state.db",
        f"PRAGMA page_size = {page_size}",
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, content TEXT)",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) "
        "INSERT INTO messages SELECT i, hex(zeroblob(100)) FROM n",
    )
    content = store.read_bytes()
    sound = inspect(store)
    store.write_bytes(b"\xff" * page_size + content[page_size:])

    assert sound.fault is None
    assert sound.header is not None
    assert sound.header.page_size == page_size
    assert inspect(store).fault == "overwritten-first-page"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bytes(4096), "4096 bytes, the one page looked at holds nothing but zeros"),
        (bytes(8192), "8192 bytes, all 2 pages looked at hold nothing but zeros"),
        (bytes(4096) + LEAF, "the header is gone, yet 1 of 1 page looked at is SQLite's"),
        (bytes(4096) + LEAF * 2, "the header is gone, yet 2 of 2 pages looked at are SQLite's"),
    ],
    ids=["one-zeroed", "two-zeroed", "one-left", "two-left"],
)
def test_number_and_noun_agree(tmp_path: Path, content: bytes, said: str) -> None:
    store = tmp_path / "state.db"
    store.write_bytes(content)

    assert inspect(store).detail == said


def test_a_zeroed_file_of_any_size_is_read_in_samples(tmp_path: Path) -> None:
    store = tmp_path / "state.db"
    with open(store, "wb") as file:
        file.truncate(1 << 33)

    bundle = inspect(store)

    assert bundle.fault == "zeroed"
    assert str(1 << 33) in bundle.detail


def test_a_fault_says_that_a_log_still_lies_beside(store: Path) -> None:
    store.write_bytes(b"")
    (store.parent / "state.db-wal").write_bytes(b"rows")

    bundle = inspect(store)

    assert bundle.fault == "empty"
    assert "-wal of 4 bytes" in bundle.detail


def test_a_log_may_hold_the_pages_that_the_header_promises(stores: Stores, tmp_path: Path) -> None:
    source = copied(stores["0.19.0"], tmp_path / "source")
    checkpointed = ("UPDATE sessions SET title = id", "PRAGMA wal_checkpoint(PASSIVE)")
    store = crashed(source, tmp_path / "store", *checkpointed)
    store.write_bytes(store.read_bytes()[:-4096])

    assert inspect(store).fault is None


@pytest.mark.parametrize("damage", ["half", "magic-gone"])
def test_a_hot_journal_may_restore_what_the_main_file_lacks(store: Path, damage: str) -> None:
    assert _damaged(store, damage).fault is not None
    Path(f"{store}-journal").write_bytes(bytes.fromhex("d9d505f920a163d7"))

    assert inspect(store).fault is None


def test_a_log_without_a_frame_has_no_content(store: Path) -> None:
    log = store.parent / "state.db-wal"
    log.write_bytes(b"")
    empty = inspect(store)
    log.write_bytes(bytes(32 + 24 + 512))
    full = inspect(store)

    assert (empty.wal_content, full.wal_content) == (False, True)


@pytest.mark.parametrize(
    ("start", "hot"), [(bytes.fromhex("d9d505f920a163d7"), True), (bytes(8), False), (b"", False)]
)
def test_a_journal_is_hot_by_its_first_bytes(store: Path, start: bytes, hot: bool) -> None:
    (store.parent / "state.db-journal").write_bytes(start + bytes(504 if start else 0))

    assert inspect(store).hot_journal is hot


def test_copies_that_hermes_left_are_named(store: Path) -> None:
    (store.parent / "state.db.retired-wal-20260801-101112-77").mkdir()
    for name in (
        "state.db.malformed-backup-1",
        "state.db.zeroed-1-2.bak",
        "state.db-copy",
        "x.db.zeroed-1.bak",
    ):
        (store.parent / name).touch()

    assert inspect(store).siblings == (
        "state.db.malformed-backup-1",
        "state.db.retired-wal-20260801-101112-77",
        "state.db.zeroed-1-2.bak",
    )


def test_a_link_leads_to_the_sidecars_of_its_target(store: Path, tmp_path: Path) -> None:
    (store.parent / "state.db-wal").write_bytes(bytes(1000))
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(store)

    bundle = inspect(link)

    assert bundle.path == str(link)
    assert bundle.main.path == str(store)
    assert bundle.wal is not None
    assert bundle.wal.path == f"{store}-wal"


def _missing(folder: Path) -> Path:
    return folder / "state.db"


def _below_a_file(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "state.db"


def _folder(folder: Path) -> Path:
    return folder


def _pipe(folder: Path) -> Path:
    os.mkfifo(folder / "state.db")
    return folder / "state.db"


def _device(_: Path) -> Path:
    return Path("/dev/zero")


def _dangling(folder: Path) -> Path:
    (folder / "state.db").symlink_to(folder / "gone.db")
    return folder / "state.db"


def _nul(folder: Path) -> Path:
    return Path(f"{folder}/a\0b")


@pytest.mark.parametrize("make", [_missing, _below_a_file, _folder, _pipe, _device, _dangling, _nul])
def test_what_is_no_file_is_a_mistake_of_the_request(tmp_path: Path, make: object) -> None:
    assert callable(make)
    with pytest.raises(UsageError) as raised:
        inspect(make(tmp_path))

    assert "\n" not in str(raised.value)


def test_a_pipe_in_the_place_of_a_log_does_not_hang(store: Path) -> None:
    os.mkfifo(f"{store}-wal")

    with pytest.raises(Undetermined, match="not a regular file, so no sidecar"):
        inspect(store)


def test_links_in_a_circle_cannot_be_determined(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")

    with pytest.raises(Undetermined):
        inspect(tmp_path / "a")


def test_a_fingerprint_stays_while_nothing_writes(store: Path) -> None:
    before = fingerprint(inspect(store))
    (store.parent / "state.db-wal").touch()
    (store.parent / "state.db-shm").write_bytes(bytes(32768))

    assert fingerprint(store) == before


@pytest.mark.parametrize(
    "what", ["grows", "is touched", "is replaced", "flips a byte", "gets a log", "gets a journal"]
)
def test_a_fingerprint_tells_a_change(store: Path, what: str) -> None:
    before = fingerprint(store)
    facts = store.stat()
    if what == "grows":
        with open(store, "ab") as file:
            file.write(b"x")
    elif what == "is touched":
        os.utime(store, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    elif what == "is replaced":
        (store.parent / "new").write_bytes(store.read_bytes())
        os.replace(store.parent / "new", store)
        os.utime(store, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    elif what == "flips a byte":
        flip(store, facts.st_size - 100)
        os.utime(store, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    else:
        (store.parent / f"state.db-{'wal' if what == 'gets a log' else 'journal'}").write_bytes(b"rows")

    assert fingerprint(store) != before


def test_a_fingerprint_of_a_store_that_went_cannot_be_determined(store: Path) -> None:
    bundle = inspect(store)
    store.unlink()

    with pytest.raises(Undetermined, match="gone"):
        fingerprint(bundle)


def test_a_header_that_does_not_know_its_page_count_says_so(stores: Stores, tmp_path: Path) -> None:
    store = filled(copied(stores["0.22.2"], tmp_path), 50)
    with open(store, "r+b") as file:
        os.pwrite(file.fileno(), struct.pack(">I", 1), 92)

    bundle = inspect(store)

    assert bundle.header is not None
    assert (bundle.header.page_count, bundle.fault) == (0, None)
