"""What the people of the demo home talked about. Data only; times, damage and files are in ``build``."""

from __future__ import annotations

from typing import NamedTuple


class Turn(NamedTuple):
    """A question and its answer; ``command`` and ``output`` are a terminal call in between."""

    question: str
    answer: str
    command: str | None = None
    output: str | None = None


class Talk(NamedTuple):
    """One conversation: its title (``None`` where nobody named it), where it happened, its turns."""

    title: str | None
    source: str
    turns: tuple[Turn, ...]


BACKUPS = Talk(
    "Backup rotation for the family server",
    "cli",
    (
        Turn(
            "How should I rotate backups of the photo folder?",
            "Keep seven daily, four weekly and twelve monthly copies.",
        ),
        Turn(
            "How big will that get?",
            "About 1.9 times the folder, measured on last month.",
            "du -sh /srv/photos",
            "412G",
        ),
        Turn(
            "Write the retention policy down.", "Done: retention.md lists each tier and who may delete what."
        ),
        Turn(
            "Which disk holds the monthly copies?",
            "The second one, sdb; it has 1.1 TB free.",
            "df -h /dev/sdb1",
            "1.1T free",
        ),
        Turn(
            "Test a restore of one folder.",
            "Restored 2,114 files, all checksums equal.",
            "restore --verify 2025-12",
            "2114 ok",
        ),
        Turn("What is missing in the policy?", "An off-site copy. Everything is in one building."),
        Turn("Where could it go?", "Your sister's machine, over the tunnel, at night."),
        Turn(
            "Draft the message to her.",
            "Drafted. It says what is stored, how much, and that it is encrypted.",
        ),
        Turn("Add the key handling.", "The key stays with you; a printed copy goes into the envelope."),
        Turn("Plan the first run.", "Friday 22:00, limited to 4 MB/s, about 29 hours."),
    ),
)

GREENHOUSE = Talk(
    "Greenhouse sensors",
    "cli",
    (
        Turn(
            "Two of five sensors went silent.",
            "Both hang on the same USB hub.",
            "dmesg | tail",
            "usb 1-4: reset",
        ),
        Turn("Is the hub broken?", "It resets every 40 minutes under load; the supply is too weak."),
        Turn("What would fix it?", "A powered hub, or two sensors on another port."),
        Turn(
            "Try the second.", "Moved; no reset for six hours.", "journalctl -k --since -6h", "no usb reset"
        ),
        Turn("Log the readings hourly.", "A timer writes to readings.csv; rotation after 90 days."),
        Turn("Warn me below four degrees.", "Below 4.0 for ten minutes a message goes to your phone."),
        Turn("And when a sensor is silent?", "After three missed readings, once a day."),
    ),
)

TRANSLATION = Talk(
    "Translate the club statutes",
    "telegram",
    (
        Turn(
            "Translate paragraph 1 into English, please.",
            "The association is called Rad und Weg and sits in Freiburg.",
        ),
        Turn("Paragraph 2?", "Its purpose is safe cycling for children and adults."),
        Turn("Is 'sits' right for a club?", "'Has its registered office' is the usual phrase."),
        Turn("Then use that everywhere.", "Changed in three places."),
    ),
)

MIGRATION = Talk(
    "Move the wiki to the new host",
    "cli",
    (
        Turn(
            "List what must move.",
            "Pages, uploads, users, and the redirect table.",
            "ls -1 /srv/wiki",
            "pages uploads",
        ),
        Turn("In which order?", "Users first, then uploads, pages, redirects; the switch last."),
        Turn("Start with the users.", "64 of 64 imported; two had no mail address."),
        Turn("And the uploads?", "3,902 files, 8 GB, checksums equal.", "rsync -a uploads/", "3902 files"),
        Turn("Now the pages.", "1,240 pages; eleven use a macro the new host lacks."),
    ),
)

TAXES = Talk(
    "Receipts for the tax year",
    "cli",
    (
        Turn(
            "Sort the receipts by category.",
            "Seven categories; 14 receipts are unreadable.",
            "ls receipts | wc -l",
            "231",
        ),
        Turn("Which are the largest?", "The laptop and the desk: 61 % of the total."),
        Turn("Can the desk be deducted at once?", "Below 800 net, yes; yours is 640."),
        Turn("Make the list for the office.", "list.csv has date, shop, amount, category."),
    ),
)

ROUTER = Talk(
    None,
    "cli",
    (
        Turn(
            "Why is the Wi-Fi slow upstairs?",
            "Channel 11 is crowded; 36 is free.",
            "iw dev wlan0 scan",
            "14 networks",
        ),
        Turn("Switch it, then.", "Switched to 36; 240 Mbit/s upstairs now."),
    ),
)

#: Healthy conversations; the demo repeats them on other days under numbered titles.
EVERYDAY = (
    TRANSLATION,
    TAXES,
    Talk(
        "Bread with less yeast",
        "telegram",
        (
            Turn("How long with half the yeast?", "Twelve hours at 18 degrees."),
            Turn("And in the fridge?", "Two days; it tastes better for it."),
        ),
    ),
    Talk(
        "Unit tests for the invoice parser",
        "cli",
        (
            Turn(
                "Which cases are missing?",
                "Negative amounts and two currencies.",
                "pytest --co -q",
                "41 tests",
            ),
            Turn("Write the first.", "test_credit_note covers it; the parser fails on it."),
            Turn("Fix the parser.", "The sign was dropped in split_amount; 42 tests pass."),
        ),
    ),
    Talk(
        "Train to Lyon in October",
        "telegram",
        (
            Turn("Which trains on the 9th?", "Three direct ones: 6:52, 12:10, 16:41."),
            Turn("The cheapest?", "6:52, from 39."),
        ),
    ),
    Talk(
        "Review of the pull request",
        "cli",
        (
            Turn(
                "Read the diff.",
                "Nine files; one migration without a way back.",
                "git diff --stat",
                "9 files",
            ),
            Turn("What would you ask?", "What happens to rows that exist already?"),
        ),
    ),
)
