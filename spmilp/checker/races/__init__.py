"""Do command lists keep a plan's order, whatever the delays? Independent of how they were made."""
