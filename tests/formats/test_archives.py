"""The store in an archive: found, unpacked alone, and refused with a reason where an archive plays tricks."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.formats.corpus import EXPORTS

from statemend.errors import Undetermined
from statemend.formats import archives, stores
from statemend.formats.archive_member import ArchiveFault
from statemend.formats.artifact import Kind

STORE = EXPORTS / "0.19.0" / "state.db"
SESSION = "20260801_090000_aaaaaa"


def zipped(path: Path, *names: str, data: bytes | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names or ("state.db",):
            archive.writestr(name, STORE.read_bytes() if data is None else data)
    return path


def tarred(path: Path, *entries: tuple[str, bytes], format_: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w:gz", format=format_) as archive:
        for name, data in entries:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def inner(path: Path) -> Path:
    member = archives.find(path)
    assert member is not None
    return archives.member_path(path, member)


def refused(path: Path) -> str:
    with pytest.raises(ArchiveFault) as caught:
        list(stores.records(inner(path), stores.Section(SESSION, 0, 0)))
    return str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda folder: zipped(folder / "backup.zip", "config.yaml", ".hermes/state.db"),
        lambda folder: tarred(folder / "coder.tar.gz", ("coder/config.yaml", b"x: 1\n"), _store("coder")),
        lambda folder: tarred(
            folder / "coder.tar.gz", ("coder/" + "ä" * 120, b""), _store("coder"), format_=tarfile.GNU_FORMAT
        ),
        lambda folder: tarred(folder / "coder.tar.gz", ("coder/" + "ä" * 120, b""), _store("coder")),
    ],
    ids=["zip", "tar", "tar with GNU names", "tar with PAX names"],
)
def test_reads_the_store_inside(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    before = os.stat(path)
    assert archives.recognise(path.read_bytes()) is Kind.ARCHIVE
    found = stores.read(inner(path))
    assert found.damage is None
    assert found.path.startswith(f"{path}!")
    assert [each.session_id for each in found.sections] == [
        each.session_id for each in stores.read(STORE).sections
    ]
    (section,) = (each for each in found.sections if each.session_id == SESSION)
    assert list(stores.records(inner(path), section)) == list(stores.records(STORE, section))
    assert sorted(tmp_path.iterdir()) == [path]
    assert os.stat(path).st_mtime_ns == before.st_mtime_ns


def _store(folder: str) -> tuple[str, bytes]:
    return f"{folder}/state.db", STORE.read_bytes()


def test_takes_the_store_nearest_to_the_top(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", "profiles/x/state.db", "a/state-snapshots/1/state.db", "a/state.db")
    member = archives.find(path)
    assert member is not None
    assert member.name == "a/state.db"


def test_an_archive_without_a_store_has_none(tmp_path: Path) -> None:
    assert archives.find(zipped(tmp_path / "b.zip", "state.db.txt", "mystate.db")) is None
    assert archives.find(tarred(tmp_path / "b.tar.gz", ("x/y/state.db", b""), ("x/state.dbx", b""))) is None


@pytest.mark.parametrize("name", ["../state.db", "/etc/state.db", "C:\\x\\state.db", "a/../../state.db"])
def test_a_name_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ArchiveFault, match="leads out of the archive"):
        archives.find(zipped(tmp_path / "b.zip", name))


def test_a_name_that_leads_out_of_a_tar_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveFault, match="leads out of the archive"):
        archives.find(tarred(tmp_path / "b.tar.gz", ("../state.db", b"x")))


def test_links_are_refused(tmp_path: Path) -> None:
    entry = zipfile.ZipInfo("state.db")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
        link = tarfile.TarInfo("x/state.db")
        link.type, link.linkname = kind, "/etc/passwd"
        with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as archive_:
            archive_.addfile(link)
        with pytest.raises(ArchiveFault, match="a link or no regular file"):
            archives.find(tmp_path / "b.tar.gz")
    with pytest.raises(ArchiveFault, match="a link or no regular file"):
        archives.find(tmp_path / "b.zip")


def test_an_encrypted_store_is_said_to_be(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "b.zip").read_bytes())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + flags] |= 1
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(ArchiveFault, match="is encrypted"):
        archives.find(tmp_path / "b.zip")


def test_bombs_are_refused_before_they_unpack(tmp_path: Path) -> None:
    zeros = bytes(1024**2)
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.db", zeros * 80)
    with pytest.raises(ArchiveFault, match="as only a bomb is"):
        archives.find(tmp_path / "b.zip")
    entry = tarfile.TarInfo("filler")
    entry.size = 80 * len(zeros)
    with gzip.open(tmp_path / "b.tar.gz", "wb", compresslevel=9) as packed:
        packed.write(entry.tobuf())
        for _ in range(80):
            packed.write(zeros)
    with pytest.raises(ArchiveFault, match="as only a bomb is"):
        archives.find(tmp_path / "b.tar.gz")


def test_a_header_without_end_is_refused(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("x")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 40
    with gzip.open(tmp_path / "b.tar.gz", "wb") as packed:
        packed.write(entry.tobuf(format=tarfile.GNU_FORMAT) + bytes(4096))
    with pytest.raises(ArchiveFault, match="header of names that is too long"):
        archives.find(tmp_path / "b.tar.gz")


def test_entries_that_overlap_are_refused(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "b.zip", "state.db", "other").read_bytes())
    first = data.index(b"PK\x01\x02")
    second = data.index(b"PK\x01\x02", first + 4)
    struct.pack_into("<L", data, second + 42, 100)  # where the other entry begins
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(ArchiveFault, match="another entry lies inside"):
        archives.find(tmp_path / "b.zip")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArchiveFault, match="several entries"):
        archives.find(zipped(tmp_path / "b.zip", "state.db", "state.db"))


def test_a_directory_without_end_is_refused(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "b.zip").read_bytes())
    struct.pack_into("<L", data, data.rindex(b"PK\x05\x06") + 12, 0x7FFFFFFF)
    (tmp_path / "b.zip").write_bytes(data)
    with pytest.raises(ArchiveFault, match="the directory of the archive is"):
        archives.find(tmp_path / "b.zip")


def test_a_store_that_lies_about_its_size_is_cut_at_it(tmp_path: Path) -> None:
    data = bytearray(zipped(tmp_path / "b.zip").read_bytes())
    struct.pack_into("<L", data, data.index(b"PK\x01\x02") + 24, 4096)
    (tmp_path / "b.zip").write_bytes(data)
    assert "does not unpack" in refused(tmp_path / "b.zip")


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_cut_or_changed_anywhere_it_is_a_reason_and_no_crash(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"b{suffix}"
    whole = (zipped(path) if suffix == ".zip" else tarred(path, _store("x"))).read_bytes()
    for step in range(1, 24):
        place = len(whole) * step // 24
        for spoilt in (whole[:place], whole[:place] + b"\xff" * 40 + whole[place + 40 :]):
            path.write_bytes(spoilt)
            with suppress(ArchiveFault):
                found = archives.find(path)
                if found is not None:
                    stores.read(archives.member_path(path, found))


def test_a_file_with_the_sign_in_its_name_is_itself(tmp_path: Path) -> None:
    path = tmp_path / "b.zip!state.db"
    path.write_bytes(STORE.read_bytes())
    assert archives.split(path) == (path, None)
    assert stores.read(path).damage is None


def test_what_is_no_archive_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "notes.zip").write_text("no archive")
    assert archives.find(tmp_path / "notes.zip") is None
    with pytest.raises(Undetermined):
        archives.find(tmp_path / "absent.zip")


def test_a_store_is_unpacked_once_for_all_who_ask_and_anew_when_the_archive_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    path = zipped(tmp_path / "b.zip")
    with archives.extracted(inner(path)) as first, archives.extracted(inner(path)) as second:
        assert first == second
        assert stat.S_IMODE(first.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(first.stat().st_mode) == 0o600
    zipped(path, "state.db", "another")
    with archives.extracted(inner(path)) as third:
        assert third != first


def test_nothing_that_was_unpacked_outlives_the_process(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip")
    script = (
        "from pathlib import Path; from statemend.formats import stores;"
        f"print(len(stores.read(Path({str(inner(path))!r})).sections))"
    )
    folder = tmp_path / "tmp"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) > 1
    assert list(folder.iterdir()) == []
