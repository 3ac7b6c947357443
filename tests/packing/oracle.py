"""A second opinion on small packings: CP-SAT with a Boolean for each pair that clashes.

Written without the package's search, sections or groups; it reads the problem as it is stated.
"""

from itertools import combinations

from spmilp.packing import Item, PackingProblem


def can_be_packed(problem: PackingProblem) -> bool:
    """Ask CP-SAT: of each pair that clashes, one of the two lies above the other."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    offsets = []
    for item in problem.items:
        inside = _offsets(problem, item)
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
    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE)
    return status != cp_model.INFEASIBLE


def _offsets(problem: PackingProblem, item: Item) -> list[int]:
    """Return the offsets of an item inside the capacity and outside reserved bytes."""
    last = (problem.capacity or 0) - item.size
    able = range(0, last + 1, item.alignment) if item.offset is None else [item.offset]
    return [
        offset
        for offset in able
        if offset <= last
        and not any(offset < end and at < offset + item.size for at, end in problem.reserved)
    ]


def _clash(problem: PackingProblem, i: int, j: int) -> bool:
    return any(
        a < d and c < b
        for a, b in problem.items[i].lifetimes
        for c, d in problem.items[j].lifetimes
    )


def _partners(problem: PackingProblem) -> list[set[int]]:
    """Return for each item those it is tied to, over any number of pairs."""
    tied = [{i} for i in range(len(problem.items))]
    for i, j in problem.together:
        for k in tied[i] | tied[j]:
            tied[k] = tied[i] | tied[j]
    return tied
