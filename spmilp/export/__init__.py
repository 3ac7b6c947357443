"""What other programs take from a plan: one file per format, and a registry of them."""
