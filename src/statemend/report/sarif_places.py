"""Where things lie, as SARIF says it: URIs relative to the home, and the list of files with their digests."""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import quote

from statemend.report import text
from statemend.report.model import Report
from statemend.report.paths import relative, within

HOME: Final = "HERMES_HOME"
#: What relative paths of a report start from.
WORKING_FOLDER: Final = "WORKING_FOLDER"


class Places:
    """The places that one report names."""

    def __init__(self, report: Report) -> None:
        self._report = report
        paths = (*(store.path for store in report.stores), *(entry.path for entry in report.artifacts))
        self._indexes = {path: index for index, path in enumerate(dict.fromkeys(paths))}

    def of(self, path: str) -> dict[str, Any]:
        """The location of a file; with its index when it is one of ``artifacts``."""
        index = self._indexes.get(path)
        return self._location(path) if index is None else self._location(path) | {"index": index}

    def artifacts(self) -> list[dict[str, Any]]:
        """The stores and the files beside them, in the order of their indexes."""
        described: dict[str, dict[str, Any]] = {}
        for store in self._report.stores:
            described[store.path] = {
                "length": store.size,
                "description": {"text": "the audited store"},
            }
        for entry in self._report.artifacts:
            kind = entry.kind if entry.damage is None else f"{entry.kind}, damaged"
            described[entry.path] = {
                "length": entry.size,
                "description": {"text": kind},
            }
            if entry.sha256:  # it may be left out of a store too large to be read whole for it
                described[entry.path]["hashes"] = {"sha-256": entry.sha256}
            if entry.modified_at is not None:
                described[entry.path]["lastModifiedTimeUtc"] = entry.modified_at
        return [
            {"location": self.of(path), "roles": ["analysisTarget"]} | described[path]
            for path in self._indexes
        ]

    def bases(self) -> dict[str, Any]:
        """What the URI bases stand for. The one of a relative home starts from the folder in which statemend
        ran, which a report does not name."""
        home = os.path.normpath(self._report.home)
        base: dict[str, Any] = {"description": {"text": "The home that was audited."}}
        if os.path.isabs(home):
            base["uri"] = f"file://{_quoted(home).rstrip('/')}/"
        elif not home.startswith(os.pardir):
            base |= {"uri": f"{_quoted(home)}/", "uriBaseId": WORKING_FOLDER}
        return {
            HOME: base,
            WORKING_FOLDER: {"description": {"text": "The folder in which statemend ran."}},
        }

    def _location(self, path: str) -> dict[str, Any]:
        home = self._report.home
        if within(path, home):
            return {"uri": _quoted(relative(path, home)), "uriBaseId": HOME}
        if os.path.isabs(path):
            return {"uri": f"file://{_quoted(path)}"}
        return {"uri": _quoted(path), "uriBaseId": WORKING_FOLDER}


def _quoted(path: str) -> str:
    """A path for a URI, byte for byte; what no file system gives is spelled out."""
    try:
        return quote(path.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return quote(text.encodable(path))
