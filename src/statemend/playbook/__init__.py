"""Playbooks: what an operator does by hand, written down, reviewed, and run by a script."""
