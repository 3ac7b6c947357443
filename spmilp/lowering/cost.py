"""Cycles and energy of a tile on a kind of core: an analytic model, or what was measured."""

from collections.abc import Sequence
from math import prod

from spmilp.errors import SpmilpError
from spmilp.frontend.graph import Group
from spmilp.frontend.operators.geometry import Work
from spmilp.frontend.regions import kinds_to_run
from spmilp.machine.machine import CoreKind
from spmilp.units import Cycles, Femtojoules


def task_cycles(work: Work, kind: CoreKind) -> Cycles | None:
    """Return the cycles of a task: its launch, then its MACs, then its vector work.

    MACs take ``prod(ceil(trip / size))`` steps over the loops that an array spreads, times the trip
    counts of the other loops; the best of the kind's arrays for the data type counts. Without such
    an array the vector lanes do the MACs, one per lane and cycle. MACs and vector work are added,
    which is conservative: many cores overlap the two. ``None`` where the kind has neither the array
    nor the lanes for it.
    """
    lanes = lanes_of(kind, work.dtype)
    macs = mac_cycles(work, kind)
    if macs is None or (work.vector > 0 and lanes == 0):
        return None
    vector = -(-work.vector // lanes) if work.vector > 0 else 0
    return max(1, kind.launch + macs + vector)


def mac_cycles(work: Work, kind: CoreKind) -> Cycles | None:
    """Return the cycles of the multiply-accumulates; ``None`` where the kind cannot do them."""
    if not work.loops:
        return 0
    arrays = [array for array in kind.arrays if array.dtype == work.dtype]
    if arrays:
        unrolled = (dict(array.unroll) for array in arrays)
        return min(
            prod(-(-n // sizes.get(loop, 1)) for loop, n in work.loops) for sizes in unrolled
        )
    lanes = lanes_of(kind, work.dtype)
    return -(-work.macs // lanes) if lanes else None


def lanes_of(kind: CoreKind, dtype: str) -> int:
    """Return the elements per cycle of a data type; 0 where the kind has no vector lanes.

    A type that the machine does not mention gets as many elements as fit the width in bytes of the
    widest mentioned one, and at least one.
    """
    mentioned = dict(kind.lanes)
    if dtype in mentioned:
        return mentioned[dtype]
    if not mentioned:
        return 0
    width = max(count * _bits(name) for name, count in kind.lanes)
    return max(1, width // _bits(dtype))


def can_run(kind: CoreKind, group: Group) -> bool:
    """Return whether a kind of core runs every operator of a group; views need nothing."""
    return kind.operators is None or kinds_to_run(group) <= kind.operators


def cannot_run(group: Group, dtype: str, kinds: Sequence[CoreKind]) -> SpmilpError:
    """Return the error that no kind of core can run a group."""
    names = ", ".join(kind.name for kind in kinds)
    operators = ", ".join(dict.fromkeys(operator.kind for operator in group.operators))
    return SpmilpError(
        f"group {group.name} ({operators}; {dtype}): none of the machine's kinds of core ({names}) "
        "can run it; use another machine, or give one of its kinds the operators and lanes"
    )


def task_energy(work: Work, kind: CoreKind) -> Femtojoules | None:
    """Return the energy of a task's MACs; ``None`` where the machine does not state it."""
    if not work.loops:
        return 0 if kind.mac_energy else None
    each = dict(kind.mac_energy).get(work.dtype)
    return None if each is None else each * work.macs


def cycles_by_kind(
    group: Group, work: Work, kinds: Sequence[CoreKind]
) -> tuple[Cycles | None, ...]:
    """Return the cycles of a tile's work on each kind of core, ``None`` where it cannot run."""
    operator = group.operators[group.anchor].kind
    return tuple(
        _measured_or_by_rule(operator, work, kind) if can_run(kind, group) else None
        for kind in kinds
    )


def _measured_or_by_rule(operator: str, work: Work, kind: CoreKind) -> Cycles | None:
    rule = task_cycles(work, kind)
    if rule is None or kind.measured is None:
        return rule
    measured = kind.measured.cycles(operator, work, rule)
    return rule if measured is None else measured


def energy_by_kind(
    group: Group, work: Work, kinds: Sequence[CoreKind]
) -> tuple[Femtojoules | None, ...]:
    """Return the energy of a tile's work on each kind of core; empty when no kind states any."""
    if not any(kind.mac_energy for kind in kinds):
        return ()
    return tuple(task_energy(work, kind) if can_run(kind, group) else None for kind in kinds)


def _bits(dtype: str) -> int:
    """Return the bits of a data type, which its name ends with: ``float16``; 8 for others."""
    digits = dtype[len(dtype.rstrip("0123456789")) :]
    return int(digits) if digits else 8
