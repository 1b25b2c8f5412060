"""The file itself: header, sidecars, structure, schema."""
