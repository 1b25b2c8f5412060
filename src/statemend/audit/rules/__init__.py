"""One folder per family, one file per rule. The registry finds them; nothing imports them by name."""
