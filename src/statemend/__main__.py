"""The console script, and ``python -m statemend``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line. Loading it takes a moment in which somebody may press Ctrl-C, too."""
    try:
        from statemend.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("statemend: interrupted before it was done\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
