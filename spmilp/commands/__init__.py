"""Command lists: how firmware runs a plan by waiting for events instead of cycles."""
