"""The SQLite file and nothing else: what lies on disk, how it is opened, what it holds."""
