"""A damaged home to try everything on."""
