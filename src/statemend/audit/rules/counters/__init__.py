"""Numbers that Hermes keeps about rows, against the rows."""
