"""Which buffer lies in which pool: logic-based Benders decomposition over the packer.

A master problem in CP-SAT chooses a pool for each buffer. Of a packing it knows the load alone: the
bytes that live at one time in a pool fit into it. So the least cost of its choices is a lower bound
on that of all packings. The packer then packs each pool. Where it proves that some buffers do not
fit together below a height, the master learns just that: if all of them lie in the pool, its height
is at least the next one. A choice that packs at what the master takes for the least is optimal
(Hooker and Ottosson, "Logic-based Benders decomposition", Mathematical Programming 96, 2003,
doi 10.1007/s10107-003-0375-9). First comes the cost; then, at the least cost, the sum of the
heights of the pools, with the height of each as a variable.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Any

from spmilp.packing.instance import instance_of
from spmilp.packing.items import PackingProblem, busiest
from spmilp.packing.pools import PoolPacking, PoolProblem, shortages, taken_by
from spmilp.packing.portfolio import DEFAULT_OPTIONS, minimise, pack
from spmilp.packing.result import LIMITS, Clock, Packing, PackingOptions, PackingStatus
from spmilp.units import Bytes

NODES_PER_SECOND = 1_000_000
"""Nodes of the packer that a deterministic second of CP-SAT counts as; both take about as long."""
FIRST_EFFORT = 1.0
"""Deterministic seconds for a master problem, at first; doubled when it says nothing new."""
FIRST_BUDGET = 400_000
"""Nodes for one pool of one choice, at first; four times as many when nothing else is left."""


def pack_pools(
    problem: PoolProblem, options: PackingOptions = DEFAULT_OPTIONS, *, heights: bool = True
) -> PoolPacking:
    """Find the packing of least cost, and with ``heights`` of the least sum of heights among these.

    A ``KeyboardInterrupt`` ends the search early; what was found until then is returned. Limits in
    nodes count CP-SAT's deterministic time too, so that they give the same answer each time.
    """
    clock = Clock(options)
    search = _Search(problem, options, clock)
    search.run(heights=heights)
    answer, (cost_bound, heights_bound) = search.best or PoolPacking(problem=problem), search.bounds
    if answer.heights is not None:
        is_least = search.is_proven(0)
        is_optimal = is_least and (not heights or search.is_proven(1))
        answer = replace(
            answer,
            status=PackingStatus.OPTIMAL if is_optimal else PackingStatus.FEASIBLE,
            heights_bound=heights_bound if heights and is_least else None,
        )
    elif search.is_infeasible:
        without = _Search(problem, options, clock, may_leave_out=True)
        without.run(heights=False)
        places = (without.best and without.best.places) or ()
        answer = replace(
            answer,
            status=PackingStatus.INFEASIBLE,
            left_out=tuple(b for b, (p, _) in enumerate(places) if p == len(problem.pools)),
            least_left_out=without.bounds[0],
            reasons=tuple(shortages(problem)),
        )
    return replace(answer, cost_bound=cost_bound, nodes=clock.nodes, seconds=clock.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """The pool of each buffer and the height of each pool; none where there is no such choice, or
    none was found. No choice has less of the objective than ``bound``, infinite if there is none.
    """

    pools: tuple[int, ...] = ()
    heights: tuple[Bytes, ...] = ()
    is_least: bool = False
    bound: float


class _Master:
    """The choice of pools, with loads for packings, and what has been learnt of packings.

    ``choices`` are the pools that each buffer may lie in, ``costs`` of a byte in each pool.
    """

    def __init__(
        self, problem: PoolProblem, choices: Sequence[Sequence[int]], costs: Sequence[int]
    ) -> None:
        from ortools.sat.python import cp_model

        self.model = cp_model.CpModel()
        self._lies = [{p: self.model.new_bool_var(f"in pool {p}") for p in on} for on in choices]
        self._heights = [
            self.model.new_int_var(0, pool.capacity, f"height of {pool.name}")
            for pool in problem.pools
        ]
        cost: Any = sum(
            costs[p] * buffer.item.size * lies
            for buffer, each in zip(problem.buffers, self._lies, strict=True)
            for p, lies in each.items()
        )
        self.objectives: tuple[Any, Any] = (cost, sum(self._heights))
        for each in self._lies:
            self.model.add_exactly_one(each.values())
        for p in range(len(problem.pools)):
            able = [b for b, each in enumerate(self._lies) if p in each]
            for b in able:
                item = problem.item_in(b, p)
                self.learn(p, (b,), (item.offset or 0) + item.size)
            self._what_lives_at_one_time_fits(problem, p, able)

    def _what_lives_at_one_time_fits(
        self, problem: PoolProblem, p: int, able: Sequence[int]
    ) -> None:
        """Add the load of each section, in bytes rounded up to what all offsets are multiples of.

        Only the topmost item of a section may reach less high than its rounded size.
        """
        items = tuple(replace(problem.item_in(b, p), offset=None) for b in able)
        instance = instance_of(PackingProblem(items=items, capacity=None))

        def rounded(number: Bytes) -> Bytes:
            return -(-number // instance.grain) * instance.grain

        padding = max((rounded(item.size) - item.size for item in items), default=0)
        reserved = [(rounded(a), rounded(z)) for a, z in problem.pools[p].reserved]
        room = rounded(problem.pools[p].capacity)
        room -= taken_by(reserved, room)
        live: list[list[Any]] = [[] for _ in range(instance.sections)]
        runs = (instance.groups.owner, instance.section_from, instance.section_until)
        for i, first, until in zip(*(run.tolist() for run in runs), strict=True):
            for section in range(first, until):
                live[section].append(rounded(items[i].size) * self._lies[able[i]][p])
        for terms in live:
            load: Any = sum(terms)
            self.model.add(load <= self._heights[p] + padding)
            self.model.add(load <= room)

    def learn(self, p: int, buffers: Sequence[int], height: Bytes) -> None:
        """Let a pool be at least as high as said where all of some buffers lie in it."""
        together = [self._lies[b][p] for b in buffers]
        self.model.add(self._heights[p] >= height).only_enforce_if(together)

    def least(self, objective: Any, effort: float, clock: Clock, seed: int) -> _Choice:
        """Return a choice with the least of an objective, or what a limit leaves of that."""
        from concurrent.futures import ThreadPoolExecutor

        from ortools.sat.python import cp_model

        self.model.minimize(objective)
        solver, left = cp_model.CpSolver(), clock.nodes_left
        solver.parameters.num_workers = 1
        solver.parameters.linearization_level = 2
        solver.parameters.random_seed = seed % 2**31
        solver.parameters.catch_sigint_signal = False
        solver.parameters.max_deterministic_time = min(
            effort, inf if left is None else left / NODES_PER_SECOND
        )
        if clock.seconds_left is not None:
            solver.parameters.max_time_in_seconds = clock.seconds_left
        # In a thread, so that a signal is heard meanwhile.
        with ThreadPoolExecutor(1) as thread:
            try:
                status = thread.submit(solver.solve, self.model).result()
            except KeyboardInterrupt:
                solver.stop_search()
                raise
        clock.nodes += 1 + int(solver.deterministic_time * NODES_PER_SECOND)
        if status == cp_model.INFEASIBLE:
            return _Choice(bound=inf, is_least=True)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return _Choice(bound=solver.best_objective_bound)
        return _Choice(
            pools=tuple(next(p for p in each if solver.value(each[p])) for each in self._lies),
            heights=tuple(map(solver.value, self._heights)),
            is_least=status == cp_model.OPTIMAL,
            bound=solver.best_objective_bound,
        )


class _Search:
    """The decomposition: the master, the packings of its pools, and the best packing of all.

    What may be left out may lie in one more pool, without limits, and costs its bytes there;
    nothing else has a cost then. Stage 0 is about the cost, stage 1 about the heights.
    """

    def __init__(
        self,
        problem: PoolProblem,
        options: PackingOptions,
        clock: Clock,
        *,
        may_leave_out: bool = False,
    ) -> None:
        self._problem, self._options, self._clock = problem, options, clock
        self._pools, outside = range(len(problem.pools)), len(problem.pools)
        self._costs = [0 if may_leave_out else pool.cost for pool in problem.pools] + [1]
        self._choices = [
            problem.pools_of(b) + (outside,) * may_leave_out for b in range(len(problem.buffers))
        ]
        self._sizes = [buffer.item.size for buffer in problem.buffers]
        self._budget, self._is_in_doubt = FIRST_BUDGET, False
        self._learnt: list[tuple[int, tuple[int, ...], Bytes]] = []
        self.best: PoolPacking | None = None
        self.is_infeasible = not all(self._choices)
        self._known: dict[tuple[int, tuple[int, ...], Bytes, bool], Packing] = {}
        least = [min((self._costs[p] for p in able), default=0) for able in self._choices]
        self.bounds = [sum(a * b for a, b in zip(least, self._sizes, strict=True)), 0]

    def is_proven(self, stage: int) -> bool:
        """Return whether nothing is better than the best packing."""
        return self._value(stage) <= self.bounds[stage]

    def _value(self, stage: int) -> float:
        """Return the cost of the best packing, or the sum of its heights."""
        best = self.best
        return inf if best is None else sum(best.heights or ()) if stage else best.cost or 0

    def run(self, *, heights: bool) -> None:
        """Search until all is proven, a limit is reached, or the call is interrupted."""
        if self.is_infeasible:
            return
        with suppress(KeyboardInterrupt):
            self._fill_greedily(())
            self._close(0)
            if heights and self.best is not None and self.best.places is not None:
                self._pack_low([p for p, _ in self.best.places])
                if self.is_proven(0):
                    self._close(1)

    def _close(self, stage: int) -> None:
        """Close the gap of the cost, or at the least cost that of the heights."""
        if self.is_proven(stage):
            return
        master, turn, effort = self._new_master(stage), 0, FIRST_EFFORT
        while not self._clock.is_up and not self.is_proven(stage):
            choice = master.least(master.objectives[stage], effort, self._clock, self._options.seed)
            if not self._is_in_doubt:
                if choice.bound == inf:
                    self.is_infeasible = True
                    return
                # The bound of a sum of whole numbers, but for how floats round it.
                self.bounds[stage] = max(self.bounds[stage], ceil(max(0, choice.bound) - 1e-6))
            if choice.pools and choice.bound < self._value(stage):
                turn += 1
                is_packed = self._pack(choice, master, stage)
                effort *= 1 + is_packed
                # Greedily at every power of two: that takes longer.
                if not is_packed and not stage and turn & (turn - 1) == 0:
                    self._fill_greedily(choice.pools)
            elif choice.is_least and self._is_in_doubt:
                # What was only given up is tried again, for longer.
                self._budget, self._is_in_doubt = 4 * self._budget, False
                master = self._new_master(stage)
            else:
                effort *= 2

    def _new_master(self, stage: int) -> _Master:
        master = _Master(self._problem, self._choices, self._costs)
        for p, buffers, height in self._learnt:
            master.learn(p, buffers, height)
        if stage:
            master.model.add(master.objectives[0] == self.bounds[0])
        return master

    def _pack(self, choice: _Choice, master: _Master, stage: int) -> bool:
        """Pack a choice, below its heights or the capacities; learn from each pool that does not.

        Return whether all did.
        """
        packings = []
        for p, pool in enumerate(self._problem.pools):
            inside, height = _inside(choice.pools, p), choice.heights[p] if stage else pool.capacity
            packings.append(self._packed(p, inside, height, conflict=True))
            if packings[-1].offsets is None:
                self._learn(p, inside, height + 1, packings[-1], master)
        if all(packing.offsets is not None for packing in packings):
            self._keep(choice.pools, packings)
            return True
        if stage:
            self._pack_low(choice.pools)
        return False

    def _learn(
        self, p: int, buffers: tuple[int, ...], least: Bytes, packing: Packing, master: _Master
    ) -> None:
        """Tell the master which buffers do not fit together below a height, or were given up."""
        pool, is_proven = self._problem.pools[p], packing.status is PackingStatus.INFEASIBLE
        if is_proven:
            buffers = tuple(buffers[i] for i in packing.conflict or range(len(buffers)))
            if least <= pool.capacity:
                least = max(least, self._packed(p, buffers, lowest=True).bound)
        self._is_in_doubt |= not is_proven
        for q, other in enumerate(self._problem.pools):
            # Pools of one kind are told the same.
            is_alike = replace(other, name=pool.name, cost=pool.cost) == pool
            if is_alike and all(q in self._choices[b] for b in buffers):
                master.learn(q, buffers, least)
                self._learnt += [(q, buffers, least)] * is_proven

    def _packed(
        self,
        p: int,
        buffers: Sequence[int],
        height: Bytes | None = None,
        *,
        nodes: int | None = None,
        conflict: bool = False,
        lowest: bool = False,
    ) -> Packing:
        """Pack buffers in a pool, below a height if there is one, for a number of nodes."""
        height = self._problem.pools[p].capacity if height is None else height
        key = p, tuple(buffers), height, lowest
        if key in self._known:
            return self._known[key]
        limits = [n for n in (nodes or self._budget, self._clock.nodes_left) if n is not None]
        options = replace(
            self._options,
            time_limit=self._clock.seconds_left,
            node_limit=min(limits),
            conflict=conflict,
        )
        problem = self._problem.problem_in(p, buffers, height)
        if lowest:
            packing = minimise(problem, options, ends_at_interrupts=False)
        else:
            packing = pack(problem, options)
        self._clock.nodes += packing.nodes
        if packing.offsets is not None:
            self._known[key] = packing
        return packing

    def _pack_low(self, pools: Sequence[int]) -> None:
        """Pack a choice as low as it can be, and keep that if it is the best."""
        self._keep(pools, [self._packed(p, _inside(pools, p), lowest=True) for p in self._pools])

    def _keep(self, pools: Sequence[int], packings: Sequence[Packing]) -> None:
        """Keep a packing if it is one, and better than the best."""
        places = [(p, 0) for p in pools]
        for p, packing in enumerate(packings):
            if packing.offsets is None:
                return
            for b, offset in zip(_inside(pools, p), packing.offsets, strict=True):
                places[b] = (p, offset)
        cost = sum(self._costs[p] * size for p, size in zip(pools, self._sizes, strict=True))
        heights = tuple(packing.height or 0 for packing in packings)
        if (cost, sum(heights)) < (self._value(0), self._value(1)):
            self.best = PoolPacking(
                problem=self._problem, places=tuple(places), cost=cost, heights=heights
            )

    def _fill_greedily(self, wanted: Sequence[int]) -> None:
        """Fill the pools from the cheapest to the dearest, and keep that if everything fits.

        First comes what fits into no later pool, then what is wanted there, then what saves most
        for its bytes and time.
        """
        time = [sum(z - a for a, z in one.item.lifetimes) for one in self._problem.buffers]
        order = [*sorted(self._pools, key=lambda p: self._costs[p]), len(self._pools)]
        pools = [-1] * len(self._choices)

        def urgency(b: int, p: int) -> tuple[float, ...]:
            costs = [self._costs[q] for q in order[order.index(p) + 1 :] if q in self._choices[b]]
            saved = (min(costs) - self._costs[p]) / time[b] if costs else inf
            return (bool(costs), p not in wanted[b : b + 1], -saved, -self._sizes[b])

        for p in order:
            able = [b for b, q in enumerate(pools) if q < 0 and p in self._choices[b]]
            able.sort(key=lambda b, p=p: urgency(b, p))  # type: ignore[misc]
            for b in self._as_many_as_fit(p, [], able) if p in self._pools else able:
                pools[b] = p
        if -1 not in pools:
            self._keep(pools, [self._packed(p, _inside(pools, p)) for p in self._pools])

    def _as_many_as_fit(self, p: int, kept: list[int], more: list[int]) -> list[int]:
        """Add to what lies in a pool all that fits; halves are tried where the whole does not."""
        buffers, few = sorted([*kept, *more]), LIMITS.nodes_per_proof
        live = busiest(self._problem.buffers[b].item for b in buffers)[2]
        # Live bytes say most often, and soon, that there is no room.
        if live <= self._problem.pools[p].room and self._packed(p, buffers, nodes=few).offsets:
            return buffers
        if len(more) <= 1 or self._clock.is_up:
            return kept
        middle = len(more) // 2
        kept = self._as_many_as_fit(p, kept, more[:middle])
        return self._as_many_as_fit(p, kept, more[middle:])


def _inside(pools: Sequence[int], pool: int) -> tuple[int, ...]:
    return tuple(b for b, p in enumerate(pools) if p == pool)
