"""What an audit found, shown: as data, as a page, as Markdown, on a terminal."""
