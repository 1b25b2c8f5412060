"""Damages to the profiles of a home."""
