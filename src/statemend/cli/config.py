"""What a project has settled for its audits: ``statemend.toml``, or a ``pyproject.toml``.

Followed is the file that ``--config`` names, else the one in the current directory; ``statemend.toml`` goes
before ``[tool.statemend]`` of ``pyproject.toml``, and no folder above is searched. A file that lies in the
audited home, or among the exports, is evidence and settles nothing unless it is named. What the command line
says goes before the file.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import msgspec

from statemend.audit.outcome import FailOn
from statemend.cli.output import complain
from statemend.errors import UsageError
from statemend.evidence.profiles import find_homes

OWN: Final = "statemend.toml"
PROJECT: Final = "pyproject.toml"
#: A ``pyproject.toml`` without this name in it settles nothing, and is not even parsed.
_TABLE: Final = b"statemend"
#: A configuration is a few hundred bytes, a large ``pyproject.toml`` some KiB.
_LARGEST = 1024 * 1024


_NAMES = 'ids, names or families, as ["LIF"]'
_TAKES: Final = {
    "rules": _NAMES,
    "ignore": _NAMES,
    "exports": 'folders or files, as ["exports"]',
    "fail-on": '"fault", "risk" or "never"',
    "baseline": 'a file, as "known.json"',
    "deep": "true or false",
}


class Configuration(msgspec.Struct, frozen=True, rename="kebab"):
    """The keys of a configuration; ``None`` where the file says nothing. Paths are relative to its folder."""

    rules: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    exports: tuple[str, ...] | None = None
    fail_on: FailOn | None = None
    baseline: str | None = None
    deep: bool | None = None


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit is asked, file and command line taken together. ``ignore`` says for each name who asked
    to leave it out."""

    exports: tuple[Path, ...]
    rules: tuple[str, ...] | None
    ignore: dict[str, str]
    fail_on: FailOn
    baseline: Path | None
    deep: bool


def settle(
    home: Path,
    config: Path | None,
    *,
    exports: Sequence[Path] | None = None,
    rules: Sequence[str] | None = None,
    ignore: Sequence[str] | None = None,
    fail_on: FailOn | None = None,
    baseline: Path | None = None,
    deep: bool | None = None,
) -> Request:
    """The request that the command line and the configuration make together, the command line first.

    ``rules`` on the command line set aside what the file says of ``rules`` and ``ignore`` both. Raises
    ``UsageError`` for a file that cannot be followed, saying which key of it is wrong.
    """
    found = _followed(config, (Path(find_homes(home).root), *(exports or ())))
    file, settled = found or (None, Configuration())
    folder = Path() if file is None else file.parent
    left_out = dict.fromkeys(names(ignore) or (), "--ignore")
    chosen = names(rules)
    if chosen is None and file is not None:
        if ignore is None:
            left_out = dict.fromkeys(settled.ignore or (), str(file))
        left_out = {**_others(settled.rules, str(file)), **left_out}
    return Request(
        exports=tuple(exports or (folder / Path(each).expanduser() for each in settled.exports or ())),
        rules=chosen,
        ignore=left_out,
        fail_on=fail_on or settled.fail_on or FailOn.FAULT,
        baseline=baseline
        or (None if settled.baseline is None else folder / Path(settled.baseline).expanduser()),
        deep=bool(settled.deep) if deep is None else deep,
    )


def names(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Names as an option takes them: by comma, and repeated; ``None`` when the option is not there."""
    return tuple(name for each in given for name in each.split(",")) if given else None


def _others(chosen: Sequence[str] | None, file: str) -> dict[str, str]:
    """Every rule that the file's ``rules`` leave out."""
    from statemend.audit.registry import all_rules, select

    if chosen is None:
        return {}
    kept = {rule.id for rule in select(chosen)}
    return {rule.id: f"the rules of {file}" for rule in all_rules() if rule.id not in kept}


def _followed(config: Path | None, evidence: Sequence[Path]) -> tuple[Path, Configuration] | None:
    """The configuration that holds, and its file; ``None`` when there is none."""
    if config is not None:
        named = load(config)
        if named is None:
            raise UsageError(f"{config}: has no table [tool.statemend]; add one, or name another file")
        return config, named
    for name in (OWN, PROJECT):
        path = Path(name).absolute()
        if not os.path.lexists(path):
            continue
        if any(_within(path, folder) for folder in evidence):
            if name == PROJECT and _TABLE not in _read(path):
                continue
            complain(f"{path}: not followed, since it lies in what is audited; --config follows it", 0)
            return None
        found = load(path)
        if found is not None:
            return path, found
    return None


def _within(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def load(path: Path) -> Configuration | None:
    """The configuration in the file; ``None`` for a ``pyproject.toml`` that has none. Raises ``UsageError``
    for a file that cannot be read, is no TOML, or has a key that is not one."""
    data = _read(path)
    if path.name == PROJECT and _TABLE not in data:
        return None
    try:
        table: Any = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path}: not valid TOML: {error}; correct it, or name another with --config"
        ) from None
    if path.name == PROJECT:
        tool = table.get("tool")
        table = tool.get("statemend") if isinstance(tool, dict) else None
        if table is None:
            return None
        if not isinstance(table, dict):
            raise UsageError(f"{path}: tool.statemend is not a table; write its keys under [tool.statemend]")
    return _decoded(path, table)


def _decoded(path: Path, table: dict[str, Any]) -> Configuration:
    known = [field.encode_name for field in msgspec.structs.fields(Configuration)]
    for key in table:
        if key not in known:
            near = get_close_matches(key.replace("_", "-"), known, n=1)
            raise UsageError(
                f"{path}: there is no key {key!r}; "
                + (f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(known)}")
            )
    try:
        settled = msgspec.convert(table, Configuration)
    except msgspec.ValidationError as error:
        key = str(error).rpartition(" - at `$.")[2].rstrip("`").partition("[")[0]
        raise UsageError(f"{path}: {key} takes {_TAKES[key]}") from None
    for key, given in (("rules", settled.rules), ("ignore", settled.ignore)):
        for wrong in _unknown(given, key):
            raise UsageError(f"{path}: {key}: {wrong}")
    return settled


def _unknown(given: Sequence[str] | None, key: str) -> Iterator[str]:
    from statemend.audit.registry import select

    if given is None or (key == "ignore" and not given):
        return
    try:
        select(given)
    except UsageError as error:
        yield str(error)


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise UsageError(f"{path}: is a folder; name a configuration file")
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}; name another file with --config") from None
    if len(data) > _LARGEST:
        raise UsageError(f"{path}: too large to be a configuration; name another file with --config")
    return data
