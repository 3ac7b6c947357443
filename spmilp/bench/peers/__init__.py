"""Inputs on which other tools have published, or were measured to reach, figures."""
