"""Pins: what plans have to keep to besides the rules."""
