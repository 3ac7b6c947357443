"""What stays the same while a plan's times and offsets change."""

from dataclasses import dataclass

import numpy as np

from spmilp.machine.machine import MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.solvers.kernels.records import NEVER, NONE, Ints, numbers
from spmilp.solvers.lns.copies import Copies
from spmilp.solvers.lns.cores.spares import MOST_SPARES, with_spares
from spmilp.solvers.lns.draft import Draft, Flags, Tenants, is_alive
from spmilp.solvers.lns.lifetimes import lifetimes, makespan_of
from spmilp.solvers.lns.places import followers_at_places, homes_of
from spmilp.solvers.lns.reading import draft_of, starts_of
from spmilp.solvers.lns.tenants import tenants_of
from spmilp.units import MemoryIdx, ResidencyIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The memories of a machine, and the order of what lies in its DRAMs.

    Parameters
    ----------
    packed
        Memories in which offsets are chosen anew: all but DRAMs.
    usable
        Bytes of each of them; ``NEVER`` for the others.
    is_dram
        Of each memory.
    homes
        The tensor at a place of which each residency lies; -1 for the others.
    copies
        The ways between scratchpads.
    placed
        Pairs of residencies at their places in tensors, one before the other.
    kept
        The order of tenants where addresses are never chosen anew.
    dram_is_free
        Whether no DRAM has a limit.
    drops_reloads
        Whether transfers may be dropped.
    spares_dram
        Whether transfers of DRAMs may become copies between scratchpads.
    """

    problem: Problem
    plan: Plan
    packed: tuple[MemoryIdx, ...]
    usable: Ints
    is_dram: Flags
    homes: Ints
    copies: Copies
    placed: tuple[tuple[ResidencyIdx, ResidencyIdx], ...]
    kept: Tenants
    dram_is_free: bool
    drops_reloads: bool
    spares_dram: bool

    def tenants(self, draft: Draft, start: Ints) -> Tenants:
        """Return who follows whom on the same bytes.

        In DRAMs without limit, addresses are given out at the end and say nothing before.
        """
        counted = ~self.is_dram[draft.memory]
        if not self.dram_is_free:
            counted |= self.homes == NONE
        return tenants_of(draft, start, counted & is_alive(draft), self.placed)


def ground_of(
    problem: Problem,
    plan: Plan,
    copies: Copies,
    *,
    drops_reloads: bool = True,
    spares_dram: bool = True,
    changes_cores: bool = True,
) -> tuple[Ground, Draft, Ints]:
    """Return what stays, and the draft and the start cycles of a valid plan.

    Parameters
    ----------
    changes_cores
        Whether tasks may change cores; the draft then has room for more transfers than the plan.
    """
    spares = min(MOST_SPARES, len(problem.tasks)) if changes_cores else 0
    draft, start = with_spares(draft_of(problem, plan), starts_of(plan), spares)
    memories = problem.machine.memories
    dram_is_free = all(memory.size is None for memory in problem.machine.drams)
    is_dram = np.array([memory.kind is MemoryKind.DRAM for memory in memories])
    begins, ends = lifetimes(draft, start, makespan_of(draft, start))
    homes = homes_of(problem, draft)
    placed = tuple(followers_at_places(problem, draft, homes, begins, ends))
    kept = is_dram[draft.memory] & (homes == NONE) & (not dram_is_free)
    ground = Ground(
        problem=problem,
        plan=plan,
        packed=tuple(np.flatnonzero(~is_dram).tolist()),
        usable=numbers(
            NEVER if memory.kind is MemoryKind.DRAM else memory.usable or 0 for memory in memories
        ),
        is_dram=is_dram,
        homes=homes,
        copies=copies,
        placed=placed,
        kept=tenants_of(draft, start, kept, placed),
        dram_is_free=dram_is_free,
        drops_reloads=drops_reloads,
        spares_dram=spares_dram,
    )
    return ground, draft, start
