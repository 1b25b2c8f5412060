"""Conversations whose links disagree with each other."""
