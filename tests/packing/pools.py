"""Random problems of several pools, and a second opinion: the whole problem in CP-SAT.

Written without the package's sections, groups or packer; it reads the problem as it is stated.
"""

from math import lcm
from random import Random

from ortools.sat.python import cp_model

from spmilp.packing import Buffer, Item, Pool, PoolProblem


def random_problem(seed: int) -> PoolProblem:
    """Return 8 to 14 buffers and two or three pools of which the last alone is large, mostly."""
    random = Random(f"pools {seed}")
    alignments = random.choice([(1,), (1,), (1, 2), (2, 4)])
    pools = []
    for p in range(random.choice((2, 3))):
        capacity = random.randint(10, 22) if p < 2 else random.randint(12, 40)
        alignment, cost = (
            random.choice((1, 1, 2, 4)),
            random.choice((p, 2 * p, random.randint(0, 3))),
        )
        start = random.randrange(8)
        reserved = ((start, start + 2),) if random.random() < 0.15 else ()
        pools.append(
            Pool(
                name="abc"[p], capacity=capacity, alignment=alignment, cost=cost, reserved=reserved
            )
        )
    if random.random() < 0.7:
        pools[-1] = Pool(name=pools[-1].name, capacity=80, cost=pools[-1].cost + 1)
    buffers = []
    for b in range(random.randint(8, 14)):
        times = sorted(random.sample(range(13), random.choice((2, 2, 2, 4))))
        alignment, size = random.choice(alignments), random.randint(1, 9)
        chance = random.random()
        offset = alignment * random.randint(0, 3) if chance < 0.1 else None
        some = random.randint(1, 2) if random.random() < 0.3 else 0
        names = tuple(sorted(random.sample([pool.name for pool in pools], some)))
        item = Item(
            size=size,
            lifetimes=tuple(zip(times[::2], times[1::2], strict=True)),
            alignment=alignment,
            offset=offset,
        )
        buffers.append(Buffer(name=f"b{b}", item=item, pools=names, at_end=0.1 <= chance < 0.2))
    return PoolProblem(buffers=tuple(buffers), pools=tuple(pools))


def least_cost_and_height(
    problem: PoolProblem, *, may_leave_out: bool = False
) -> tuple[int, int] | None:
    """Return the least cost and then the least sum of heights; ``None`` if not everything fits.

    What may be left out costs its bytes, and nothing else has a cost then.
    """
    model = cp_model.CpModel()
    heights = [model.new_int_var(0, pool.capacity, "height") for pool in problem.pools]
    lies = [[model.new_bool_var("lies") for _ in problem.pools] for _ in problem.buffers]
    offsets, left_out = [], []
    for b, buffer in enumerate(problem.buffers):
        item = buffer.item
        left_out.append(model.new_bool_var("left out"))
        model.add_exactly_one([*lies[b], left_out[b]])
        if not may_leave_out:
            model.add(left_out[b] == 0)
        offset = model.new_int_var(0, max(pool.capacity for pool in problem.pools), "offset")
        offsets.append(offset)
        for p, pool in enumerate(problem.pools):
            step = lcm(item.alignment, pool.alignment)
            starts = range(0, pool.capacity - item.size + 1, step)
            able = [
                at
                for at in (starts[-1:] if buffer.at_end else starts)
                if item.offset in (None, at)
                and all(at >= end or at + item.size <= start for start, end in pool.reserved)
            ]
            if (buffer.pools and pool.name not in buffer.pools) or not able:
                model.add(lies[b][p] == 0)
                continue
            domain = cp_model.Domain.from_values(able)
            model.add_linear_expression_in_domain(offset, domain).only_enforce_if(lies[b][p])
            model.add(heights[p] >= offset + item.size).only_enforce_if(lies[b][p])
    for p in range(len(problem.pools)):
        times, places = [], []
        for b, buffer in enumerate(problem.buffers):
            lies_here, size = lies[b][p], buffer.item.size
            for start, end in buffer.item.lifetimes:
                here = (lies_here, "in time")
                times.append(model.new_optional_fixed_size_interval_var(start, end - start, *here))
                here = (lies_here, "in bytes")
                places.append(model.new_optional_fixed_size_interval_var(offsets[b], size, *here))
        model.add_no_overlap_2d(times, places)
    costs = [0 if may_leave_out else pool.cost for pool in problem.pools]
    cost = sum(
        buffer.item.size * (left_out[b] + sum(a * x for a, x in zip(costs, lies[b], strict=True)))
        for b, buffer in enumerate(problem.buffers)
    )
    best = _least(model, cost)
    if best is None:
        return None
    model.add(cost == best)
    lowest = _least(model, sum(heights))
    assert lowest is not None
    return best, lowest


def _least(model: cp_model.CpModel, objective: cp_model.LinearExprT) -> int | None:
    model.minimize(objective)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 60
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE), "the second opinion gave up"
    return round(solver.objective_value) if status == cp_model.OPTIMAL else None
