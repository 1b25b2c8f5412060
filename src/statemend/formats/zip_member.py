"""The store in a zip file, found by the file's directory and unpacked alone."""

from __future__ import annotations

import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from statemend.formats.archive_member import (
    STORE_NAME,
    ArchiveFault,
    Member,
    check_name,
    check_size,
    depth,
    is_store_name,
)

#: The directory is held in memory whole. Of a home with a million files it is smaller.
_LARGEST_DIRECTORY = 128 * 1024**2
_END = struct.Struct("<4s4H2LH")
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")
_LONGEST_COMMENT = 65535
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
_CHUNK = 1024 * 1024
#: What the standard library raises for an archive that is not what it says.
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, struct.error, OverflowError)


def recognise(head: bytes) -> bool:
    """Whether a file begins as a zip file does, or as an empty one."""
    return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))


def find(file: BinaryIO) -> Member | None:
    """The store in the file. Raises ``ArchiveFault``."""
    with _directory(file) as archive:
        entry = _entry(archive)
        return None if entry is None else Member(entry.filename, entry.file_size, entry.compress_size)


def blocks(file: BinaryIO, member: Member) -> Iterator[bytes]:
    """The bytes of the store, its checksum compared at the end. Raises ``ArchiveFault``."""
    with _directory(file) as archive:
        entry = _entry(archive)
        if entry is None or entry.filename != member.name or entry.file_size != member.size:
            raise ArchiveFault("the archive changed while it was read", broken=True)
        try:
            with archive.open(entry) as source:
                while block := source.read(_CHUNK):
                    yield block
        except (*_BROKEN, RuntimeError, NotImplementedError) as error:
            raise ArchiveFault(f"its {STORE_NAME} does not unpack: {_said(error)}", broken=True) from error


def _directory(file: BinaryIO) -> zipfile.ZipFile:
    length = _directory_length(file)
    if length is None:
        raise ArchiveFault("the archive is cut off: its directory is missing", broken=True)
    if length > _LARGEST_DIRECTORY:
        raise ArchiveFault(f"the directory of the archive is {length:,} bytes long")
    try:
        return zipfile.ZipFile(file)
    except (*_BROKEN, NotImplementedError) as error:
        raise ArchiveFault(f"the archive is damaged: {_said(error)}", broken=True) from error


def _directory_length(file: BinaryIO) -> int | None:
    """How long the directory says it is, ``None`` where there is no end of an archive."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - _LONGEST_COMMENT - _END.size)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        return None
    length: int = _END.unpack_from(tail, at)[5]
    locator = start + at - _LOCATOR_64.size
    if locator >= 0:
        file.seek(locator)
        mark, _, offset, _ = _LOCATOR_64.unpack(file.read(_LOCATOR_64.size))
        if mark == b"PK\x06\x07" and offset + _END_64.size <= size:
            file.seek(offset)
            length = max(length, _END_64.unpack(file.read(_END_64.size))[8])
    return length


def _entry(archive: zipfile.ZipFile) -> zipfile.ZipInfo | None:
    """The store nearest to the top, if it may be unpacked."""
    named = [entry for entry in archive.infolist() if is_store_name(entry.filename) and not entry.is_dir()]
    if not named:
        return None
    chosen = min(named, key=lambda entry: depth(entry.filename))
    check_name(chosen.filename)
    if sum(entry.filename == chosen.filename for entry in named) > 1:
        raise ArchiveFault(f"the archive has several entries {chosen.filename}")
    if chosen.flag_bits & _ENCRYPTED:
        raise ArchiveFault(f"its {STORE_NAME} is encrypted; unpack it and name it with --exports")
    if _is_special(chosen):
        raise ArchiveFault(f"its {STORE_NAME} is a link or no regular file")
    if chosen.compress_type not in _METHODS:
        raise ArchiveFault(f"its {STORE_NAME} is packed by a method that is not known here")
    check_size(chosen.file_size, chosen.compress_size)
    end = chosen.header_offset + chosen.compress_size
    if any(chosen.header_offset <= each.header_offset < end for each in archive.infolist() if each != chosen):
        raise ArchiveFault(f"another entry lies inside its {STORE_NAME}, as in a bomb")
    return chosen


def _is_special(entry: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    return kind not in (0, stat.S_IFREG)


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__
