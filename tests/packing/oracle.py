"""A second opinion on small packings: plain enumeration, and CP-SAT with a Boolean per pair.

Written without the package's search, sections or groups; both read the problem as it is stated.
"""

from itertools import combinations

from ortools.sat.python import cp_model

from spmilp.packing import Item, PackingProblem

NODES = 20_000


class TooManyNodesError(Exception):
    """Enumeration was given up."""


def can_be_packed(problem: PackingProblem) -> bool:
    """Decide by enumeration, and by CP-SAT where that takes too long."""
    try:
        return enumeration_packs(problem)
    except TooManyNodesError:
        return cp_sat_packs(problem)


def enumeration_packs(problem: PackingProblem) -> bool:
    """Try every offset of every item, item by item, until two clash."""
    items = problem.items
    order = sorted(range(len(items)), key=lambda i: (items[i].offset is None, -_area(items[i])))
    partners = _partners(problem)
    clashing = {(i, j) for i, j in combinations(range(len(items)), 2) if _clash(problem, i, j)}
    clashing -= {(i, j) for i, j in clashing if j in partners[i]}
    offset: dict[int, int] = {}
    nodes = 0

    def fits(i: int) -> bool:
        if not _inside(problem, items[i], offset[i]):
            return False
        for j in offset:
            if j in partners[i]:
                if offset[i] != offset[j]:
                    return False
            elif (min(i, j), max(i, j)) in clashing and (
                offset[i] < offset[j] + items[j].size and offset[j] < offset[i] + items[i].size
            ):
                return False
        return True

    def place(position: int) -> bool:
        nonlocal nodes
        nodes += 1
        if nodes > NODES:
            raise TooManyNodesError
        if position == len(order):
            return True
        i = order[position]
        for candidate in _candidates(problem, items[i]):
            offset[i] = candidate
            if fits(i) and place(position + 1):
                return True
            del offset[i]
        return False

    return place(0)


def cp_sat_packs(problem: PackingProblem) -> bool:
    """Ask CP-SAT: for each pair that clashes, one of the two lies above the other."""
    model = cp_model.CpModel()
    offsets = []
    for item in problem.items:
        inside = [o for o in _candidates(problem, item) if _inside(problem, item, o)]
        if not inside:
            return False
        offsets.append(model.new_int_var_from_domain(cp_model.Domain.from_values(inside), "offset"))
    partners = _partners(problem)
    for i, j in combinations(range(len(problem.items)), 2):
        if j in partners[i]:
            model.add(offsets[i] == offsets[j])
        elif _clash(problem, i, j):
            below = model.new_bool_var("below")
            first, second = problem.items[i].size, problem.items[j].size
            model.add(offsets[i] + first <= offsets[j]).only_enforce_if(below)
            model.add(offsets[j] + second <= offsets[i]).only_enforce_if(~below)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE):
        raise AssertionError(f"CP-SAT came to no end: {status}")
    return status != cp_model.INFEASIBLE


def _area(item: Item) -> int:
    return item.size * sum(end - start for start, end in item.lifetimes)


def _candidates(problem: PackingProblem, item: Item) -> list[int]:
    if item.offset is not None:
        return [item.offset]
    return list(range(0, (problem.capacity or 0) - item.size + 1, item.alignment))


def _inside(problem: PackingProblem, item: Item, offset: int) -> bool:
    end = offset + item.size
    return end <= (problem.capacity or 0) and not any(
        offset < until and start < end for start, until in problem.reserved
    )


def _clash(problem: PackingProblem, i: int, j: int) -> bool:
    live_together = any(
        a < d and c < b
        for a, b in problem.items[i].lifetimes
        for c, d in problem.items[j].lifetimes
    )
    return live_together or (i, j) in problem.apart or (j, i) in problem.apart


def _partners(problem: PackingProblem) -> list[set[int]]:
    """Return for each item those it is tied to, over any number of pairs."""
    tied = [{i} for i in range(len(problem.items))]
    for i, j in problem.together:
        for k in tied[i] | tied[j]:
            tied[k] = tied[i] | tied[j]
    return tied
