"""What exports hold, against what the store holds or once held."""
