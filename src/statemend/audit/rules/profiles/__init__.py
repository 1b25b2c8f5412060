"""Rules about the profiles of a home, each with a store of its own."""
