"""Rules about the search index: what it lacks, and what it holds too much."""
