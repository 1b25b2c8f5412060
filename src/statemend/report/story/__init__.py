"""The story of an incident, told from reports and runs: ``statemend/story/v1``."""
