"""Cells of single messages that no release would write."""
