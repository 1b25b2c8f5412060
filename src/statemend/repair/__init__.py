"""Turns findings into a reviewable plan, and a plan into a verified change that can be undone."""
