"""Rules about how sessions begin and end."""
