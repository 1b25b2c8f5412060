"""Measure what lies beside a store: the coverage of 10,000 exports (2 GB), and logs of 1 GB.

``python -m benchmarks.evidence`` builds what is missing below the test cache, measures, and prints a table.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.evidence_build import FORMATS, LOGS, SESSIONS, exported, logged, written
from benchmarks.run import Cost, best, statemend

RUNS = 3
HEADING = "| what | processor | clock | peak memory | |\n|---|---|---|---|---|"

#: What any audit of the folder has to do: every byte of every file read and hashed.
READ_ALL = """
import hashlib, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    with open(path, "rb") as file:
        hashlib.file_digest(file, "sha256")
"""

#: The logs unpacked and their lines counted, in pieces.
READ_LOGS = """
import gzip, pathlib, sys
for path in sorted(pathlib.Path(sys.argv[1]).glob("agent.log*")):
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        while piece := file.read(1 << 20):
            piece.count(b"\\n")
"""


def python(code: str, *arguments: str) -> list[str]:
    """The command that runs a piece of code."""
    return [sys.executable, "-c", code, *arguments]


def audited(*arguments: str) -> Cost:
    """What an audit costs, whatever it finds."""
    return best(statemend("scan", *arguments, "--format", "json"), RUNS, expected=(0, 1))


def row(name: str, cost: Cost, remark: str = "") -> None:
    """Processor time says more than the clock where other programs run."""
    print(f"| {name} | {cost.processor:.1f} s | {cost.seconds:.1f} s | {cost.megabytes:.0f} MB | {remark} |")


def measure_exports() -> None:
    """Print what it costs to read the exports, to audit their store, and to do that with them."""
    place, folder = exported(), written()
    size, names = folder.size / 1e9, ", ".join(FORMATS)
    print(f"{folder.files:,} exports, {size:.2f} GB: {SESSIONS:,} sessions as {names}\n\n{HEADING}")
    row("read and hash every file", best(python(READ_ALL, str(place.exports)), RUNS))
    alone = audited(str(place.home))
    row("scan of their store, without them", alone)
    covered = audited(str(place.home), "--exports", str(place.exports))
    coverage = covered.processor - alone.processor
    wanted = f"coverage {coverage:.0f} s; Hermes needs {folder.hermes_seconds:.0f} s to write them"
    row("scan with them", covered, f"{wanted} (wanted: less than that, below 300 MB)")


def measure_logs() -> None:
    """Print what it costs to read the logs, and to audit a home with them and one without."""
    home = logged()
    print(f"\nLogs of {sum(LOGS.values()) / 1000:.1f} GB in {len(LOGS)} files, two of them gzip\n\n{HEADING}")
    row("unpack them and count lines", best(python(READ_LOGS, str(home / "logs")), RUNS))
    row("scan with them", audited(str(home)))
    row("scan of as small a store without logs", audited(str(home.parent / "30-messages")))


def main() -> None:
    subprocess.run([sys.executable, "-m", "benchmarks.evidence_build"], check=True)
    measure_exports()
    measure_logs()


if __name__ == "__main__":
    main()
