"""What lies beside the store: the artifacts of a home, and how far they cover its sessions."""
