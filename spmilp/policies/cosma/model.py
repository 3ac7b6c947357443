"""COSMA's exact model, solved with CP-SAT.

Li, Gupta, Malik, "COSMA", arXiv 2311.18246, equations 1 to 12: at each step one operator runs, and
each tensor is created, preserved, spilled, retrieved, or away; what is on the chip has an address,
which stays while the tensor is preserved; the bytes spilled and retrieved are to be few. Two gaps
are closed that allow more than the text means: at most one operator runs in a step, and nothing is
preserved or spilled in the first. A network input is created by a step of its own that reads
nothing; so are weights, where there are any.

The model is COSMA's, its writing is not, and no solution is lost by it: an operator runs no earlier
than after all before it in the graph, and no later than before all after it; tensors do not exist
before they can be created, nor after their last possible reader; disjoint addresses at a step are
one constraint over optional intervals instead of big-M rows for each pair; and that the bytes on
the chip add up to the budget at most, which disjoint addresses imply, is stated for its bound.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ortools.sat.python.cp_model import (
    FEASIBLE,
    OPTIMAL,
    CpModel,
    CpSolver,
    IntVar,
    LinearExpr,
    LinearExprT,
)

from spmilp.policies.cosma.network import Network

STATUS = {OPTIMAL: "optimal", FEASIBLE: "feasible"}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the search has found: bytes beyond the compulsory ones, and a proven bound on them.

    Parameters
    ----------
    extra
        ``None`` without a solution.
    """

    status: str
    extra: int | None
    bound: int


def solve(
    network: Network,
    budget: int,
    *,
    seconds: float,
    workers: int = 1,
    addresses: bool = True,
    fixed_order: bool = False,
) -> Answer:
    """Search for the fewest bytes that are spilled and retrieved.

    Parameters
    ----------
    addresses
        Without them (equations 9 to 11) the model is a relaxation of COSMA's.
    fixed_order
        Whether operators run in the order of the network, as in "COSMA FS".
    """
    model = CosmaModel(network, budget, addresses=addresses, fixed_order=fixed_order)
    solver = CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    status = STATUS.get(solver.solve(model.cp), "unknown")
    found = None if status == "unknown" else round(solver.objective_value)
    return Answer(status=status, extra=found, bound=round(solver.best_objective_bound))


@dataclass(frozen=True, slots=True, kw_only=True)
class CosmaStep:
    """What happens at a step, in this order: spills, retrievals, and one tensor is created."""

    spilled: tuple[int, ...]
    retrieved: tuple[int, ...]
    created: int


class CosmaModel:
    """The model. Its tensors are those of the network, and so are its producers, one for each.

    Parameters
    ----------
    outside
        Tensors that lie in DRAM in any case, so that their spills move nothing and are free.
    """

    def __init__(
        self,
        network: Network,
        budget: int,
        *,
        addresses: bool = True,
        fixed_order: bool = False,
        outside: frozenset[int] = frozenset(),
    ) -> None:
        self.cp = self._model = CpModel()
        self._outside = outside
        self._sizes = network.sizes
        self._budget = budget
        self._addresses = addresses
        self._read_by: dict[int, tuple[int, ...]] = dict.fromkeys(network.inputs, ())
        for operator in network.operators:
            self._read_by[operator.writes] = operator.reads
        self._order = tuple(self._read_by)
        self._steps = _steps(self._read_by, fixed_order)
        last = {t: max(steps) for t, steps in self._steps.items()}
        for reader, reads in self._read_by.items():
            for tensor in reads:
                last[tensor] = max(last[tensor], max(self._steps[reader]))
        self._lives = {t: range(min(steps), last[t] + 1) for t, steps in self._steps.items()}
        self._created = self._booleans(self._steps)
        self._preserved = self._booleans(self._lives)
        self._spilled = self._booleans(self._lives)
        self._retrieved = self._booleans(self._lives)
        self._add_all()

    def read(self, value: Callable[[IntVar], int]) -> Iterator[CosmaStep]:
        """Yield what a solution does at each step; ``value`` gives the value of a variable."""
        for step in range(len(self._order)):
            living = self._living(step)
            created = (t for t in living if (t, step) in self._created)
            yield CosmaStep(
                spilled=tuple(t for t in living if value(self._spilled[t, step])),
                retrieved=tuple(t for t in living if value(self._retrieved[t, step])),
                created=next(t for t in created if value(self._created[t, step])),
            )

    def _add_all(self) -> None:
        """Add the equations; the numbers are the paper's."""
        self._a_tensor_is_in_one_state()
        self._what_is_preserved_or_spilled_was_there()
        self._what_is_retrieved_was_spilled()
        self._operators_read_what_is_there()
        self._each_operator_runs_once_and_at_a_step_only_one()
        self._bytes_on_the_chip_are_within_the_budget()
        if self._addresses:
            self._addresses_are_disjoint_and_stay()
        spills = [(t, v) for (t, _), v in self._spilled.items() if t not in self._outside]
        retrievals = [(t, v) for (t, _), v in self._retrieved.items()]
        moved = [(self._sizes[t], v) for t, v in (*spills, *retrievals)]
        self._model.minimize(LinearExpr.weighted_sum([v for _, v in moved], [s for s, _ in moved]))

    def _booleans(self, steps: dict[int, range]) -> dict[tuple[int, int], IntVar]:
        return {(t, step): self._model.new_bool_var("") for t in steps for step in steps[t]}

    def _resident(self, tensor: int, step: int) -> LinearExprT:
        kinds = (self._created, self._preserved, self._retrieved)
        return LinearExpr.sum([kind.get((tensor, step), 0) for kind in kinds])

    def _a_tensor_is_in_one_state(self) -> None:
        """Equation 1."""
        for tensor, step in self._preserved:
            spilled = self._spilled[tensor, step]
            self._model.add(LinearExpr.sum([self._resident(tensor, step), spilled]) <= 1)

    def _what_is_preserved_or_spilled_was_there(self) -> None:
        """Equations 2 and 3; at a tensor's first step there is nothing before."""
        for tensor, step in self._preserved:
            before = (tensor, step - 1)
            new = LinearExpr.sum([kind.get(before, 0) for kind in (self._created, self._preserved)])
            self._model.add(self._preserved[tensor, step] <= self._resident(*before))
            self._model.add(self._spilled[tensor, step] <= new)

    def _what_is_retrieved_was_spilled(self) -> None:
        """Equations 4 and 8."""
        for tensor, life in self._lives.items():
            for step in life:
                spilled = sum(self._spilled[tensor, k] for k in life if k <= step)
                self._model.add(self._retrieved[tensor, step] <= spilled)
            self._model.add(sum(self._spilled[tensor, k] for k in life) <= 1)

    def _operators_read_what_is_there(self) -> None:
        """Equation 5."""
        for tensor, step in self._created:
            for read in self._read_by[tensor]:
                there = [kind.get((read, step), 0) for kind in (self._preserved, self._retrieved)]
                self._model.add(self._created[tensor, step] <= sum(there))

    def _each_operator_runs_once_and_at_a_step_only_one(self) -> None:
        """Equation 7, and what the paper leaves unsaid."""
        for tensor, steps in self._steps.items():
            self._model.add_exactly_one(self._created[tensor, step] for step in steps)
        for step in range(len(self._order)):
            self._model.add_at_most_one(
                self._created[t, step] for t in self._order if (t, step) in self._created
            )

    def _bytes_on_the_chip_are_within_the_budget(self) -> None:
        """Implied by equations 9 and 10."""
        for step in range(len(self._order)):
            living = self._living(step)
            resident = [self._resident(t, step) for t in living]
            used = LinearExpr.weighted_sum(resident, [self._sizes[t] for t in living])
            self._model.add(used <= self._budget)

    def _addresses_are_disjoint_and_stay(self) -> None:
        """Equations 9 to 11."""
        model, address = self._model, {}
        for step in range(len(self._order)):
            extents = []
            for tensor in self._living(step):
                size = self._sizes[tensor]
                here = model.new_int_var(0, self._budget - size, "")
                address[tensor, step] = here
                resident = model.new_bool_var("")
                model.add(resident == self._resident(tensor, step))
                extents.append(model.new_optional_fixed_size_interval_var(here, size, resident, ""))
            model.add_no_overlap(extents)
        for tensor, life in self._lives.items():
            for before, step in pairwise(life):
                stays = address[tensor, step] == address[tensor, before]
                model.add(stays).only_enforce_if(self._preserved[tensor, step])

    def _living(self, step: int) -> list[int]:
        return [tensor for tensor, life in self._lives.items() if step in life]


def _steps(read_by: dict[int, tuple[int, ...]], fixed_order: bool) -> dict[int, range]:
    """Return the steps at which each tensor can be created.

    Parameters
    ----------
    read_by
        For each tensor, in an order in which they can be created, what its operator reads.
    """
    order = list(read_by)
    if fixed_order:
        return {tensor: range(step, step + 1) for step, tensor in enumerate(order)}
    before: dict[int, set[int]] = {}
    after: dict[int, int] = dict.fromkeys(order, 0)
    for tensor in order:
        before[tensor] = {e for read in read_by[tensor] for e in (read, *before[read])}
        for earlier in before[tensor]:
            after[earlier] += 1
    return {t: range(len(before[t]), len(order) - after[t]) for t in order}
