"""What became of the addresses of an earlier plan: how many are kept, which are not, and why."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from spmilp.plan.plan import Measures
from spmilp.quantities import percent
from spmilp.units import Bytes

SHOWN = 8
"""Addresses not kept that are listed; ``--json`` lists all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A buffer, or a part of one, or a tensor that does not lie where it lay.

    ``now`` is its address in that memory; ``None`` where it lies there no more, or several times.
    """

    name: str
    memory: str
    before: Bytes
    now: Bytes | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressStability:
    """What became of the addresses of an earlier plan, which is called ``origin``.

    Of those ``kept``, ``tensors`` are of tensors in DRAM. Buffers ``left_free`` had several in a
    memory, one after another, which nobody can keep. The measures are those of the plan, of one
    that was found without the lock (``None`` if none was), and of the ``earlier`` one.
    """

    origin: str
    kept: int
    tensors: int
    moved: tuple[Moved, ...]
    left_free: int
    measures: Measures
    unlocked: Measures | None
    earlier: Measures

    def lines(self) -> Iterator[str]:
        """Return what people read of it."""
        all_of_them = self.kept + len(self.moved)
        free = f"; {self.left_free:,} more had several and are left free" * bool(self.left_free)
        yield (
            f"lock: {self.kept:,} of {all_of_them:,} addresses of {self.origin} are kept, "
            f"{self.tensors:,} of them of tensors in DRAM{free}"
        )
        against = [("the earlier plan", self.earlier)]
        if self.unlocked is not None:
            against.insert(0, ("without the lock", self.unlocked))
        for what, other in against:
            cycles = f"makespan {_change(other.makespan, self.measures.makespan)}"
            peak = f"peak SPM {_change(other.peak_spm, self.measures.peak_spm)}"
            yield f"lock: beside {what}: {cycles}, {peak}"
        for why, count in Counter(each.why for each in self.moved).most_common(SHOWN):
            some = [each for each in self.moved if each.why == why]
            names = ", ".join(f"{each.name} ({each.memory})" for each in some[:2])
            more = f" and {count - 2:,} more" if count > 2 else ""
            yield f"lock: {count:,} not kept: {why}: {names}{more}"


def _change(before: int, now: int) -> str:
    change = f" ({'+' * (now > before)}{percent((now - before) / before)})" if before else ""
    return f"{now:,} instead of {before:,}{change}"
