"""An expanded machine as JSON, as it stands in ``problem.json``; rates are ``"n/d"`` strings."""

from dataclasses import fields, is_dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from spmilp.machine.machine import Machine

YOUNGER = ("event_maximum", "controller")
"""Younger than the format: left out where they say nothing, so older files keep their hashes."""


def machine_to_json(machine: Machine) -> dict[str, Any]:
    """Return a machine as JSON data."""
    found: dict[str, Any] = _plain(machine)
    return found


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        # What has no part in comparisons is no part of the machine's description either.
        pairs = ((each.name, getattr(value, each.name)) for each in fields(value) if each.compare)
        return {
            name: _plain(inside)
            for name, inside in pairs
            if inside is not None or name not in YOUNGER
        }
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple):
        return [_plain(element) for element in value]
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    return value.value if isinstance(value, StrEnum) else value
