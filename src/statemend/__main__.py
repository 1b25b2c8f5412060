"""``python -m statemend``."""

from __future__ import annotations

from statemend.cli.app import main

if __name__ == "__main__":
    main()
