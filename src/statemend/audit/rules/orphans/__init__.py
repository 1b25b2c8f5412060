"""Rows, parents and log lines that point at a session which is not there."""
