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
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from spmilp.packing.instance import instance_of
from spmilp.packing.items import PackingProblem
from spmilp.packing.pools import PoolPacking, PoolProblem, shortages, taken_by
from spmilp.packing.portfolio import DEFAULT_OPTIONS, minimise, pack
from spmilp.packing.result import LIMITS, Clock, Packing, PackingOptions, PackingStatus
from spmilp.units import Bytes

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

NODES_PER_SECOND = 200_000
"""Nodes that a deterministic second of CP-SAT counts as; the packer takes about a second for as
many."""
FIRST_BUDGET = 400_000
"""Nodes for one pool of one choice, at first; four times as many when nothing else is left."""
SHARE = 0.8
"""Of the work that is left, what one master problem may take: its choice is still to be packed."""


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
    found, answer = search.best, PoolPacking(problem=problem, cost_bound=search.bound)
    if found is not None:
        is_least = search.bound >= found.cost
        is_lowest = not heights or search.heights_bound >= sum(found.heights)
        answer = replace(
            answer,
            status=PackingStatus.OPTIMAL if is_least and is_lowest else PackingStatus.FEASIBLE,
            places=found.places,
            cost=found.cost,
            heights=found.heights,
            heights_bound=search.heights_bound if heights and is_least else None,
        )
    elif search.is_infeasible:
        without = _Search(problem, options, clock, may_leave_out=True)
        without.run(heights=False)
        places = () if without.best is None else without.best.places
        answer = replace(
            answer,
            status=PackingStatus.INFEASIBLE,
            left_out=tuple(b for b, (p, _) in enumerate(places) if p == len(problem.pools)),
            least_left_out=without.bound,
            reasons=tuple(shortages(problem)),
        )
    return replace(answer, nodes=clock.nodes, seconds=clock.seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A packing of all pools."""

    cost: int
    heights: tuple[Bytes, ...]
    places: tuple[tuple[int, Bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What the master says: the pool of each buffer and the height of each pool; none of both when
    it is infeasible or at its limit. Nothing is below its bound, which is infinite if infeasible.
    """

    pools: tuple[int, ...] = ()
    heights: tuple[Bytes, ...] = ()
    is_least: bool = True
    bound: float


class _Master:
    """The choice of pools, with loads for packings, and what has been learnt of packings.

    ``choices`` are the pools that each buffer may lie in, ``costs`` of a byte in each pool.
    """

    def __init__(
        self, problem: PoolProblem, choices: Sequence[Sequence[int]], costs: Sequence[int]
    ) -> None:
        from ortools.sat.python import cp_model

        self._model = cp_model.CpModel()
        self._lies = [
            {p: self._model.new_bool_var(f"{buffer.name} in pool {p}") for p in able}
            for buffer, able in zip(problem.buffers, choices, strict=True)
        ]
        self._heights = [
            self._model.new_int_var(0, pool.capacity, f"height of {pool.name}")
            for pool in problem.pools
        ]
        self.height: Any = sum(self._heights)
        self.cost: Any = sum(
            costs[p] * buffer.item.size * lies
            for buffer, each in zip(problem.buffers, self._lies, strict=True)
            for p, lies in each.items()
        )
        for each in self._lies:
            self._model.add_exactly_one(each.values())
        for p in range(len(problem.pools)):
            self._pools_reach_above_each_buffer_in_them(problem, p)
            self._what_lives_at_one_time_fits(problem, p)

    def _pools_reach_above_each_buffer_in_them(self, problem: PoolProblem, p: int) -> None:
        for b, each in enumerate(self._lies):
            if p in each:
                item = problem.item_in(b, p)
                self.learn(p, (b,), (item.offset or 0) + item.size)

    def _what_lives_at_one_time_fits(self, problem: PoolProblem, p: int) -> None:
        """Add the load of each section, in bytes rounded up to what all offsets are multiples of.

        Only the topmost item of a section may reach less high than its rounded size.
        """
        able = [b for b, each in enumerate(self._lies) if p in each]
        items = [replace(problem.item_in(b, p), offset=None) for b in able]
        instance, pool = (
            instance_of(PackingProblem(items=tuple(items), capacity=None)),
            problem.pools[p],
        )
        grain = instance.grain
        rounded = [-(-item.size // grain) * grain for item in items]
        padding = max((r - item.size for r, item in zip(rounded, items, strict=True)), default=0)
        top = -(-pool.capacity // grain) * grain
        taken = taken_by(
            ((-(-a // grain) * grain, -(-z // grain) * grain) for a, z in pool.reserved), top
        )
        live: list[list[Any]] = [[] for _ in range(instance.sections)]
        runs = (instance.groups.owner, instance.section_from, instance.section_until)
        for i, first, until in zip(*(run.tolist() for run in runs), strict=True):
            for section in range(first, until):
                live[section].append(rounded[i] * self._lies[able[i]][p])
        for terms in live:
            load: Any = sum(terms)
            self._model.add(load <= self._heights[p] + padding)
            if taken:
                self._model.add(load <= top - taken)

    def learn(self, p: int, buffers: Sequence[int], height: Bytes) -> None:
        """Let a pool be at least as high as said where all of some buffers lie in it."""
        together = [self._lies[b][p] for b in buffers]
        self._model.add(self._heights[p] >= height).only_enforce_if(together)

    def fix_cost(self, cost: int) -> None:
        """Allow only choices of a cost."""
        self._model.add(self.cost == cost)

    def least(
        self, objective: Any, clock: Clock, seed: int, hint: Sequence[tuple[int, Bytes]]
    ) -> _Choice:
        """Return a choice with the least of an objective, or what a limit leaves of that."""
        from ortools.sat.python import cp_model

        self._model.clear_hints()
        for each, (pool, _) in zip(self._lies, hint, strict=False):
            for p, lies in each.items():
                self._model.add_hint(lies, p == pool)
        self._model.minimize(objective)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed % 2**31
        solver.parameters.catch_sigint_signal = False
        if clock.seconds_left is not None:
            solver.parameters.max_time_in_seconds = SHARE * clock.seconds_left
        if clock.nodes_left is not None:
            work = SHARE * clock.nodes_left / NODES_PER_SECOND
            solver.parameters.max_deterministic_time = work
        status = _solve(solver, self._model)
        clock.nodes += 1 + int(solver.deterministic_time * NODES_PER_SECOND)
        if status == cp_model.INFEASIBLE:
            return _Choice(bound=inf)
        bound = solver.best_objective_bound
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return _Choice(is_least=False, bound=bound)
        return _Choice(
            pools=tuple(next(p for p in each if solver.value(each[p])) for each in self._lies),
            heights=tuple(map(solver.value, self._heights)),
            is_least=status == cp_model.OPTIMAL,
            bound=bound,
        )


def _solve(solver: "cp_model.CpSolver", model: "cp_model.CpModel") -> int:
    """Solve in a thread, so that a signal is heard meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        try:
            return int(thread.submit(solver.solve, model).result())
        except KeyboardInterrupt:
            solver.stop_search()
            raise


class _Search:
    """The decomposition: the master, the packings of its pools, and the best packing of all.

    What may be left out may lie in one more pool, without limits, and costs its bytes there;
    nothing else has a cost then.
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
        self._pools, self._outside = range(len(problem.pools)), len(problem.pools)
        self._costs = [0 if may_leave_out else pool.cost for pool in problem.pools] + [1]
        self._choices = [
            (*problem.pools_of(b), *([self._outside] if may_leave_out else []))
            for b in range(len(problem.buffers))
        ]
        self._sizes = [buffer.item.size for buffer in problem.buffers]
        self._budget = FIRST_BUDGET
        self._learnt: list[tuple[int, tuple[int, ...], Bytes]] = []
        self._is_in_doubt = False
        self._packings: dict[tuple[int, tuple[int, ...], Bytes], Packing] = {}
        self.best: _Found | None = None
        self.is_infeasible = not all(self._choices)
        self.heights_bound = 0
        self.bound = sum(
            size * min((self._costs[p] for p in able), default=0)
            for size, able in zip(self._sizes, self._choices, strict=True)
        )

    def run(self, *, heights: bool) -> None:
        """Search until all is proven, a limit is reached, or the call is interrupted."""
        if self.is_infeasible:
            return
        with suppress(KeyboardInterrupt):
            self._fill_greedily(())
            self._close(heights=False)
            if heights and self.best is not None:
                self._pack_low([p for p, _ in self.best.places])
                if self.bound >= self.best.cost:
                    self._close(heights=True)

    def _close(self, *, heights: bool) -> None:
        """Close the gap of the cost, or at the least cost that of the heights."""
        master, turn = self._new_master(heights), 0
        while not self._clock.is_up:
            if not self._is_in_doubt and self._beats_all(
                self.heights_bound if heights else self.bound, heights
            ):
                return
            objective = master.height if heights else master.cost
            hint = () if self.best is None else self.best.places
            choice = master.least(objective, self._clock, self._options.seed, hint)
            if not self._is_in_doubt:
                self._raise_bound(choice.bound, heights)
            if not choice.pools or self._beats_all(choice.bound, heights):
                if not self._is_in_doubt or not choice.is_least:
                    return
                # What was only given up is tried again, for longer.
                self._budget *= 4
                self._is_in_doubt = False
                master = self._new_master(heights)
                continue
            turn += 1
            is_packed = self._pack(choice, master, heights)
            if is_packed and not choice.is_least:
                return
            if not is_packed and not heights and turn & (turn - 1) == 0:
                self._fill_greedily(choice.pools)

    def _new_master(self, heights: bool) -> _Master:
        master = _Master(self._problem, self._choices, self._costs)
        for p, buffers, height in self._learnt:
            master.learn(p, buffers, height)
        if heights and self.best is not None:
            master.fix_cost(self.best.cost)
        return master

    def _beats_all(self, bound: float, heights: bool) -> bool:
        """Return whether nothing from a bound on is better than the best packing."""
        best = self.best
        return best is not None and bound > (sum(best.heights) if heights else best.cost) - 1

    def _raise_bound(self, bound: float, heights: bool) -> None:
        """Take over what is proven; bounds of whole numbers are whole, but for what rounding does."""
        if bound == inf:
            self.is_infeasible = self.best is None
        elif bound > 0 and heights:
            self.heights_bound = max(self.heights_bound, ceil(bound - 1e-6))
        elif bound > 0:
            self.bound = max(self.bound, ceil(bound - 1e-6))

    def _pack(self, choice: _Choice, master: _Master, heights: bool) -> bool:
        """Pack a choice, below its heights or the capacities; learn from each pool that does not.

        Return whether all did.
        """
        packings = []
        for p, pool in enumerate(self._problem.pools):
            inside = _inside(choice.pools, p)
            height = choice.heights[p] if heights else pool.capacity
            packings.append(self._packing(p, inside, height))
            if packings[-1].offsets is None:
                self._learn(p, inside, height, packings[-1], master)
        is_packed = all(packing.offsets is not None for packing in packings)
        if is_packed:
            self._keep(choice.pools, packings)
        elif heights:
            self._pack_low(choice.pools)
        return is_packed

    def _learn(
        self, p: int, buffers: tuple[int, ...], height: Bytes, packing: Packing, master: _Master
    ) -> None:
        """Tell the master which buffers do not fit together below a height, or were given up."""
        pool, least = self._problem.pools[p], height + 1
        is_proven = packing.status is PackingStatus.INFEASIBLE
        if is_proven:
            buffers = tuple(buffers[i] for i in packing.conflict or range(len(buffers)))
            if least <= pool.capacity:
                least = max(least, self._lowest(p, buffers).bound)
        self._is_in_doubt |= not is_proven
        for q, other in enumerate(self._problem.pools):
            # Pools of one kind are told the same.
            is_alike = replace(other, name=pool.name, cost=pool.cost) == pool
            if is_alike and all(q in self._choices[b] for b in buffers):
                master.learn(q, buffers, least)
                self._learnt += [(q, buffers, least)] * is_proven

    def _packing(self, p: int, buffers: tuple[int, ...], height: Bytes) -> Packing:
        """Pack buffers in a pool below a height; what is decided is remembered."""
        key = p, buffers, height
        if key not in self._packings:
            packing = self._spend(
                pack(self._problem.problem_in(*key), self._limited(self._budget, conflict=True))
            )
            if packing.status is PackingStatus.UNKNOWN:
                return packing
            self._packings[key] = packing
        return self._packings[key]

    def _lowest(self, p: int, buffers: Sequence[int]) -> Packing:
        """Return the lowest packing of buffers in a pool."""
        problem = self._problem.problem_in(p, buffers, self._problem.pools[p].capacity)
        limited = self._limited(self._budget, conflict=False)
        return self._spend(minimise(problem, limited, ends_at_interrupts=False))

    def _spend(self, packing: Packing) -> Packing:
        self._clock.nodes += packing.nodes
        return packing

    def _limited(self, nodes: int, *, conflict: bool) -> PackingOptions:
        """Return what is left of the limits, for one pool."""
        left = self._clock.nodes_left
        return replace(
            self._options,
            time_limit=self._clock.seconds_left,
            node_limit=nodes if left is None else min(nodes, left),
            conflict=conflict,
        )

    def _pack_low(self, pools: Sequence[int]) -> None:
        """Pack a choice as low as it can be, and keep that if it is the best."""
        self._keep(pools, [self._lowest(p, _inside(pools, p)) for p in self._pools])

    def _keep(self, pools: Sequence[int], packings: Sequence[Packing]) -> None:
        """Keep a packing if it is one, and better than the best."""
        places = [(p, 0) for p in pools]
        for p, packing in enumerate(packings):
            if packing.offsets is None:
                return
            for b, offset in zip(_inside(pools, p), packing.offsets, strict=True):
                places[b] = (p, offset)
        cost = sum(self._costs[p] * size for p, size in zip(pools, self._sizes, strict=True))
        heights, best = tuple(packing.height or 0 for packing in packings), self.best
        if best is None or (cost, sum(heights)) < (best.cost, sum(best.heights)):
            self.best = _Found(cost=cost, heights=heights, places=tuple(places))

    def _fill_greedily(self, wanted: Sequence[int]) -> None:
        """Fill the pools from the cheapest to the dearest, and keep that if everything fits.

        First comes what fits into no later pool, then what is wanted there, then what saves most
        for its bytes and time.
        """
        time = [sum(z - a for a, z in one.item.lifetimes) for one in self._problem.buffers]
        order = sorted(self._pools, key=lambda p: self._costs[p])
        pools = [self._outside] * len(self._choices)

        def urgency(b: int, p: int) -> tuple[float, ...]:
            later = [*order[order.index(p) + 1 :], self._outside]
            costs = [self._costs[q] for q in later if q in self._choices[b]]
            saved = (min(costs) - self._costs[p]) / time[b] if costs else inf
            return (bool(costs), p not in wanted[b : b + 1], -saved, -self._sizes[b])

        for p in order:
            left = [b for b, q in enumerate(pools) if q == self._outside and p in self._choices[b]]
            for b in self._as_many_as_fit(p, [], sorted(left, key=lambda b: urgency(b, p))):
                pools[b] = p
        if all(p in able for p, able in zip(pools, self._choices, strict=True)):
            capacities = [pool.capacity for pool in self._problem.pools]
            self._keep(
                pools, [self._packing(p, _inside(pools, p), capacities[p]) for p in self._pools]
            )

    def _as_many_as_fit(self, p: int, kept: list[int], more: list[int]) -> list[int]:
        """Add to what lies in a pool all that fits; halves are tried where the whole does not."""
        buffers, capacity = sorted([*kept, *more]), self._problem.pools[p].capacity
        few = self._limited(LIMITS.nodes_per_proof, conflict=False)
        packing = self._spend(pack(self._problem.problem_in(p, buffers, capacity), few))
        if packing.offsets is not None:
            return buffers
        if len(more) <= 1 or self._clock.is_up:
            return kept
        middle = len(more) // 2
        kept = self._as_many_as_fit(p, kept, more[:middle])
        return self._as_many_as_fit(p, kept, more[middle:])


def _inside(pools: Sequence[int], pool: int) -> tuple[int, ...]:
    return tuple(b for b, p in enumerate(pools) if p == pool)
