"""Kinds of damage to plans: of tasks, addresses, residencies, transfers, claims and files."""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from tests.checker.mutations.mutant import KINDS, READ_WITH_PROBLEM, Fields, Mutant, kind


def memory_of(mutant: Mutant, row: Fields) -> Fields:
    """Return the memory of a residency."""
    found: Fields = mutant.subject.machine["memories"][row["memory"]]
    return found


def comes(row: Fields, step: int) -> None:
    """Let a task, a residency or a transfer come so much later, as it is."""
    for field in ("start", "sent", "end"):
        if field in row:
            row[field] += step


def always(row: Fields) -> bool:
    return True


def is_filled(row: Fields) -> bool:
    return "filled_by_task" in row or "filled_by_transfer" in row


def lasts(row: Fields) -> bool:
    return bool(row["end"] - row["start"] > 1)


def rows_of(mutant: Mutant, table: str) -> int:
    return len(mutant.plan[table])


def machine(mutant: Mutant, table: str) -> int:
    """Return how many of a kind the machine has."""
    return len(mutant.subject.machine[table])


def alignment(mutant: Mutant, row: Fields) -> int:
    return int(memory_of(mutant, row)["alignment"])


Where: TypeAlias = Callable[[Fields], Any]
Value: TypeAlias = Callable[[Mutant, Fields], Any]


def reads(row: Fields) -> bool:
    return bool(row.get("reads"))


def writes(row: Fields) -> bool:
    return bool(row.get("writes"))


def above(**least: int) -> Where:
    return lambda row: all(row[field] > value for field, value in least.items())


def _remove_last(mutant: Mutant, table: str) -> None:
    mutant.row(table)
    mutant.plan[table].pop()


def put(table: str, name: str, where: Where = always, **fields: int | Value) -> None:
    """Add a kind: a row of a table, for which something holds, has so much more, or values."""

    def change(mutant: Mutant) -> None:
        row = mutant.row(table, where)
        for field, new in fields.items():
            row[field] = row[field] + new if isinstance(new, int) else new(mutant, row)

    KINDS[name] = change


def two(name: str, table: str, field: str, *, alike: Where = always, swap: bool = True) -> None:
    """Add a kind: a row has what another one has that is alike in something, and the other its."""

    def change(mutant: Mutant) -> None:
        one, other = mutant.two(table, alike)
        one[field], other[field] = other[field], one[field] if swap else other[field]

    KINDS[name] = change


def gone(name: str, table: str, where: Where, field: str) -> None:
    """Add a kind: a row has a field no more."""
    KINDS[name] = lambda mutant: mutant.row(table, where).pop(field)


def lists(
    table: str, field: str, name: str, change: Callable[[Mutant, list[int]], Any], least: int = 1
) -> None:
    """Add a kind: a list in a row, of so many numbers at least, is changed."""
    KINDS[name] = lambda mutant: change(
        mutant, mutant.row(table, lambda row: len(row.get(field, ())) >= least)[field]
    )


def replaced(name: str, change: Callable[[Mutant, Fields, Fields], Any]) -> None:
    """Add a kind: of two residencies of which the second replaces the first one in place."""
    KINDS[name] = lambda mutant: change(mutant, *mutant.one_of(_in_place(mutant)))


def numbers(name: str, new: Callable[[Mutant, int], Any]) -> None:
    """Add a kind: any number of any row is another one."""

    def change(mutant: Mutant) -> None:
        row = any_row(mutant)
        field = mutant.one_of(sorted(field for field in row if isinstance(row[field], int)))
        row[field] = new(mutant, row[field])

    KINDS[name] = change


def any_row(mutant: Mutant) -> Fields:
    return mutant.row(mutant.one_of(("tasks", "residencies", "transfers", "tensors")))


def add_again(mutant: Mutant, table: str) -> None:
    rows = mutant.plan[table]
    rows.append(dict(mutant.row(table), index=len(rows)))


task, residency, transfer, tensor = (
    partial(put, table) for table in ("tasks", "residencies", "transfers", "tensors")
)
operands, targets, route = (
    partial(lists, *place)
    for place in (("tasks", "reads"), ("transfers", "destinations"), ("transfers", "route"))
)

for one in ("task", "residency", "transfer"):
    rows = {"residency": "residencies"}.get(one, f"{one}s")
    KINDS[f"a_{one}_is_there_twice"] = lambda m, rows=rows: add_again(m, rows)
    KINDS[f"a_{one}_is_missing"] = lambda m, rows=rows: m.plan[rows].remove(m.row(rows))

for name, rows in (("the_last_task_is_missing", "tasks"), ("a_tensor_is_missing", "tensors")):
    KINDS[name] = partial(_remove_last, table=rows)

task("a_task_starts_a_cycle_earlier", above(start=0), start=-1)
task("a_task_starts_a_cycle_later", start=1)
task("a_task_takes_a_cycle_more", cycles=1)
task("a_task_takes_a_cycle_less", above(cycles=1), cycles=-1)
task("a_task_runs_on_another_core", core=lambda m, r: m.other(machine(m, "cores"), r["core"]))
task("a_task_runs_on_no_core", core=lambda m, r: machine(m, "cores"))
task(
    "a_task_has_any_residency_for_scratch",
    scratch=lambda m, r: m.other(rows_of(m, "residencies"), r.get("scratch")),
)
residency("an_offset_is_a_byte_higher", offset=1)
residency("an_offset_is_an_alignment_higher", offset=lambda m, r: r["offset"] + alignment(m, r))
residency("a_residency_has_a_byte_more", bytes=1)
residency("a_residency_has_a_byte_less", above(bytes=1), bytes=-1)
residency(
    "scratch_has_twice_the_bytes", lambda r: "slice" not in r, bytes=lambda m, r: r["bytes"] * 2
)
tensor("a_tensor_is_a_byte_higher", address=1)
tensor("a_tensor_has_another_number", index=1)
residency("a_residency_starts_a_cycle_earlier", above(start=0), start=-1)
residency("a_residency_starts_a_cycle_later", lasts, start=1)
residency("a_residency_starts_at_cycle_0", above(start=0), start=lambda m, r: 0)
residency("a_residency_ends_a_cycle_earlier", lasts, end=-1)
residency("a_residency_ends_a_cycle_later", end=1)
residency("a_residency_ends_at_any_cycle", end=lambda m, r: max(r["start"] + 1, m.cycle()))
residency("a_residency_lasts_to_the_end", end=lambda m, r: m.plan["solve"]["makespan"] + 1)
residency("a_residency_ends_when_it_starts", above(start=0), end=lambda m, r: r["start"])
residency(
    "a_residency_is_in_another_memory",
    memory=lambda m, r: m.other(machine(m, "memories"), r["memory"]),
)
residency("a_residency_is_in_no_memory", memory=lambda m, r: machine(m, "memories"))
residency(
    "a_residency_holds_any_slice", slice=lambda m, r: m.other(m.subject.slices(), r.get("slice"))
)
residency(
    "a_residency_names_another_task",
    lambda r: "filled_by_task" in r,
    filled_by_task=lambda m, r: m.other(rows_of(m, "tasks"), r["filled_by_task"]),
)
residency(
    "a_residency_names_another_transfer",
    lambda r: "filled_by_transfer" in r,
    filled_by_transfer=lambda m, r: m.other(rows_of(m, "transfers"), r["filled_by_transfer"]),
)
residency(
    "a_residency_names_a_task_and_a_transfer",
    lambda r: "filled_by_transfer" in r,
    filled_by_task=lambda m, r: 0,
)
residency(
    "what_is_there_at_the_start_names_a_task",
    lambda r: not is_filled(r),
    filled_by_task=lambda m, r: m.random.randrange(rows_of(m, "tasks")),
)
transfer("a_transfer_starts_a_cycle_earlier", above(start=0), start=-1)
transfer("a_transfer_starts_a_cycle_later", start=1)
transfer("a_transfer_is_sent_a_cycle_earlier", sent=-1)
transfer("a_transfer_is_sent_a_cycle_later", sent=1)
transfer("a_transfer_is_sent_when_it_starts", sent=lambda m, r: r["start"])
transfer("a_transfer_is_sent_when_it_arrives", sent=lambda m, r: r["end"])
transfer("a_transfer_is_sent_after_it_arrives", sent=lambda m, r: r["end"] + 1)
transfer("a_transfer_arrives_a_cycle_earlier", end=-1)
transfer("a_transfer_arrives_a_cycle_later", end=1)
transfer("a_transfer_comes_a_cycle_earlier", above(start=0), start=-1, sent=-1, end=-1)
transfer("a_transfer_comes_a_cycle_later", start=1, sent=1, end=1)
transfer(
    "a_transfer_goes_through_another_engine",
    engine=lambda m, r: m.other(machine(m, "engines"), r["engine"]),
)
transfer("a_transfer_goes_through_no_engine", engine=lambda m, r: machine(m, "engines"))
transfer(
    "a_transfer_goes_through_a_channel_too_many",
    channel=lambda m, r: m.subject.machine["engines"][r["engine"]]["channels"],
)
transfer(
    "a_transfer_comes_from_any_residency",
    source=lambda m, r: m.other(rows_of(m, "residencies"), r["source"]),
)
transfer(
    "a_transfer_comes_from_where_it_goes",
    lambda r: r["destinations"],
    source=lambda m, r: r["destinations"][0],
)
transfer("a_transfer_goes_nowhere", destinations=lambda m, r: [])
transfer("a_route_goes_over_no_link", lambda r: r["route"], route=lambda m, r: [])
transfer("a_transfer_moves_any_slice", slice=lambda m, r: m.other(m.subject.slices(), r["slice"]))


@kind
def a_task_starts_at_any_cycle(mutant: Mutant) -> None:
    # The cycle is drawn first: cases of the conformance suite are made so.
    mutant.row("tasks")["start"] = mutant.cycle()


@kind
def a_transfer_starts_at_any_cycle(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    comes(row, mutant.cycle() - row["start"])


def _starts(name: str, moment: Callable[[Mutant, Fields], int]) -> None:
    """Add a kind: a transfer starts at a moment of another one of its engine."""

    def change(mutant: Mutant) -> None:
        one, other = mutant.two("transfers", lambda row: row["engine"])
        comes(one, moment(mutant, other) - one["start"])
        for kept in map(mutant.residency, one["destinations"]):
            kept["start"] = min(kept["start"], one["start"])

    KINDS[f"a_transfer_starts_when_another_one_{name}"] = change


_starts("does", lambda m, other: int(other["start"]))
_starts("is_sent", lambda m, other: int(other["sent"]))
_starts("has_arrived", lambda m, other: int(other["end"]))
_starts(
    "is_sent_after_its_set_up",
    lambda m, other: other["sent"] - m.subject.machine["engines"][other["engine"]]["setup"],
)


@kind
def a_source_ends_when_all_is_sent(mutant: Mutant) -> None:
    move = mutant.row("transfers")
    mutant.residency(move["source"])["end"] = move["sent"] - mutant.random.choice((0, 0, 1))


@kind
def a_task_starts_when_its_operand_is_sent(mutant: Mutant) -> None:
    move = mutant.row("transfers")
    run = mutant.row("tasks", lambda r: set(move["destinations"]) & set(r.get("reads", ())))
    run["start"] = move["sent"]
    for index in run.get("writes", ()):
        mutant.residency(index)["start"] = move["sent"]


task(
    "a_task_writes_another_residency",
    writes,
    writes=lambda m, r: [m.other(rows_of(m, "residencies"), r["writes"][0]), *r["writes"][1:]],
)
task(
    "a_task_writes_what_it_reads",
    lambda r: writes(r) and reads(r),
    writes=lambda m, r: [r["reads"][0], *r["writes"][1:]],
)
residency(
    "a_residency_starts_when_its_filler_ends",
    lambda r: "filled_by_transfer" in r,
    start=lambda m, r: m.plan["transfers"][r["filled_by_transfer"]]["end"],
)
two("two_tasks_of_a_core_swap_their_starts", "tasks", "start", alike=lambda r: r["core"])
two("a_task_takes_what_another_one_takes", "tasks", "cycles", swap=False)
two("two_tasks_swap_their_cores", "tasks", "core")
two("two_tasks_stand_in_another_order", "tasks", "index")
two(
    "an_offset_is_that_of_a_neighbour",
    "residencies",
    "offset",
    alike=lambda r: r["memory"],
    swap=False,
)
two("two_offsets_are_swapped", "residencies", "offset", alike=lambda r: r["memory"])
two(
    "two_offsets_of_equal_sizes_are_swapped",
    "residencies",
    "offset",
    alike=lambda r: (r["memory"], r["bytes"]),
)
two("a_tensor_lies_where_another_one_lies", "tensors", "address", swap=False)
two("two_residencies_stand_in_another_order", "residencies", "index")
two("two_transfers_swap_their_destinations", "transfers", "destinations")
two(
    "two_transfers_of_a_slice_swap_their_destinations",
    "transfers",
    "destinations",
    alike=lambda r: r["slice"],
)
two("two_transfers_stand_in_another_order", "transfers", "index")
gone("a_task_writes_nothing", "tasks", writes, "writes")
gone("a_task_has_no_scratch", "tasks", lambda r: r.get("scratch") is not None, "scratch")
gone("a_residency_holds_no_slice", "residencies", lambda r: "slice" in r, "slice")


def _any_residency(mutant: Mutant, some: list[int]) -> None:
    place = mutant.random.randrange(len(some))
    some[place] = mutant.other(len(mutant.plan["residencies"]), some[place])


def _alike(field: str) -> Callable[[Mutant, list[int]], None]:
    """Return a change of any number of a list to a residency with the same in a field."""

    def change(mutant: Mutant, some: list[int]) -> None:
        place = mutant.random.randrange(len(some))
        old = mutant.residency(some[place])
        some[place] = mutant.row(
            "residencies", lambda new: new is not old and new.get(field) == old.get(field)
        )["index"]

    return change


operands("a_task_reads_any_residency", _any_residency)
operands("a_task_reads_another_residency_of_the_same_slice", _alike("slice"))
operands("a_task_reads_another_slice_of_the_same_memory", _alike("memory"))
operands("the_reads_of_a_task_are_swapped", lambda m, r: r.append(r.pop(0)), 2)
operands("a_task_reads_less", lambda m, r: r.pop())
operands("a_task_reads_more", lambda m, r: r.append(r[0]))
targets("a_transfer_goes_to_any_residency", _any_residency)
targets(
    "a_transfer_goes_to_one_more",
    lambda m, to: to.append(m.random.randrange(rows_of(m, "residencies"))),
)
targets("a_transfer_goes_twice_to_one", lambda m, to: to.append(to[0]))
targets("a_multicast_goes_to_one_less", lambda m, to: to.pop(), 2)
targets("a_multicast_names_its_destinations_in_another_order", lambda m, to: to.reverse(), 2)
route("a_route_has_a_link_less", lambda m, route: route.pop(m.random.randrange(len(route))))
route(
    "a_route_has_a_link_more",
    lambda m, route: route.append(m.one_of(range(machine(m, "links")))),
    0,
)
route("a_route_goes_over_a_link_twice", lambda m, r: r.append(r[0]))
route("a_route_is_the_other_way_round", lambda m, r: r.reverse(), 2)
route(
    "a_route_goes_over_a_link_that_is_none", lambda m, route: route.append(machine(m, "links")), 0
)


@kind
def a_task_starts_when_another_one_ends(mutant: Mutant) -> None:
    one, other = mutant.two("tasks")
    one["start"] = other["start"] + other["cycles"]


@kind
def a_task_runs_on_another_core_of_the_same_memory(mutant: Mutant) -> None:
    row, cores = mutant.row("tasks"), mutant.subject.machine["cores"]
    memory = cores[row["core"]]["memory"]
    row["core"] = mutant.one_of(
        core["index"] for core in cores if core["memory"] == memory and core["index"] != row["core"]
    )


@kind
def two_tasks_swap_what_they_write(mutant: Mutant) -> None:
    one = mutant.row("tasks", writes)
    other = mutant.row("tasks", lambda row: writes(row) and row is not one)
    one["writes"], other["writes"] = other["writes"], one["writes"]


@kind
def two_tasks_share_their_scratch(mutant: Mutant) -> None:
    one = mutant.row("tasks", lambda row: row.get("scratch") is not None)
    other = mutant.row("tasks", lambda row: row.get("scratch") is not None and row is not one)
    other["scratch"] = one["scratch"]


@kind
def a_task_goes_to_another_core_with_its_results(mutant: Mutant) -> None:
    """As it would be if nothing of its operands mattered."""
    row, cores = mutant.row("tasks"), mutant.subject.machine["cores"]
    row["core"] = mutant.other(len(cores), row["core"])
    for index in (*row.get("writes", ()), *([] if "scratch" not in row else [row["scratch"]])):
        mutant.residency(index)["memory"] = cores[row["core"]]["memory"]


@kind
def a_task_and_its_results_come_a_cycle_later(mutant: Mutant) -> None:
    row = mutant.row("tasks", writes)
    row["start"] += 1
    for index in row["writes"]:
        mutant.residency(index)["start"] += 1


@kind
def an_offset_is_an_alignment_lower(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: r["offset"] >= alignment(mutant, r))
    row["offset"] -= alignment(mutant, row)


@kind
def an_offset_is_any_aligned_address(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    memory = memory_of(mutant, row)
    most = max(1, ((memory["size"] or 4096) - row["bytes"]) // memory["alignment"])
    row["offset"] = mutant.random.randrange(most) * memory["alignment"]


@kind
def a_residency_leaves_its_memory(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: memory_of(mutant, r)["size"] is not None)
    memory = memory_of(mutant, row)
    row["offset"] = memory["size"] // memory["alignment"] * memory["alignment"]
    row["offset"] -= (row["bytes"] - 1) // memory["alignment"] * memory["alignment"]


@kind
def a_residency_begins_where_a_neighbour_ends(mutant: Mutant) -> None:
    one, other = mutant.two("residencies", lambda row: row["memory"])
    one["offset"] = other["offset"] + other["bytes"]


@kind
def a_tensor_is_an_alignment_higher(mutant: Mutant) -> None:
    row = mutant.row("tensors")
    memory = mutant.subject.problem["tensors"][row["index"]]["memory"]
    row["address"] += mutant.subject.machine["memories"][memory]["alignment"]


@kind
def a_tensor_moves_with_what_lies_in_it(mutant: Mutant) -> None:
    """Behind all others, or onto them."""
    row = mutant.row("tensors")
    memory = mutant.subject.problem["tensors"][row["index"]]["memory"]
    alignment = mutant.subject.machine["memories"][memory]["alignment"]
    _move(mutant, row, mutant.random.choice([alignment, 1 << 20]))


@kind
def a_tensor_leaves_its_memory(mutant: Mutant) -> None:
    memories = mutant.subject.machine["memories"]
    drams = {t["index"]: memories[t["memory"]] for t in mutant.subject.problem["tensors"]}
    row = mutant.row("tensors", lambda row: drams[row["index"]]["size"] is not None)
    _move(mutant, row, drams[row["index"]]["size"] - row["address"])


@kind
def a_tensor_moves_into_another_one(mutant: Mutant) -> None:
    one, other = mutant.two("tensors")
    _move(mutant, one, other["address"] + mutant.random.choice([0, 8, 64]) - one["address"])


def _move(mutant: Mutant, row: Fields, step: int) -> None:
    memory = mutant.subject.problem["tensors"][row["index"]]["memory"]
    row["address"] += step
    for kept in mutant.plan["residencies"]:
        if kept["memory"] == memory and _tensor_of(mutant, kept) == row["index"]:
            kept["offset"] += step


def _tensor_of(mutant: Mutant, kept: Fields) -> int | None:
    problem = mutant.subject.problem
    if "slice" not in kept:
        return None
    index = kept["slice"]
    whole = len(problem["buffers"])
    buffer = problem["buffers"][
        index if index < whole else problem["slices"][index - whole]["buffer"]
    ]
    place = buffer.get("place")
    return None if place is None else int(place["tensor"])


@kind
def an_operand_ends_early_and_a_copy_with_its_reader(mutant: Mutant) -> None:
    """The value is not lost, and yet not where it is read."""
    run = mutant.row("tasks", reads)
    old = mutant.residency(mutant.one_of(run["reads"]))
    end = run["start"] + run["cycles"]
    copy = mutant.row(
        "residencies",
        lambda r: r is not old and r.get("slice") == old.get("slice") and r["start"] < end - 1,
    )
    old["end"], copy["end"] = end - 1, end + mutant.random.choice([-1, 0, 1])


@kind
def a_residency_comes_at_another_time(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    comes(row, mutant.cycle() - row["start"])


@kind
def a_residency_holds_the_whole_buffer(mutant: Mutant) -> None:
    whole = len(mutant.subject.problem["buffers"])
    row = mutant.row("residencies", lambda row: row.get("slice", 0) >= whole)
    row["slice"] = mutant.subject.problem["slices"][row["slice"] - whole]["buffer"]


@kind
def a_residency_holds_a_slice_of_its_buffer(mutant: Mutant) -> None:
    slices = mutant.subject.problem["slices"]
    row = mutant.row("residencies", lambda r: any(s["buffer"] == r.get("slice") for s in slices))
    part = mutant.one_of(s for s in slices if s["buffer"] == row["slice"])
    row["slice"], row["bytes"] = part["index"], part["bytes"]


def without_filler(mutant: Mutant, **fields: int) -> None:
    row = mutant.row("residencies", is_filled)
    row.pop("filled_by_task", None)
    row.pop("filled_by_transfer", None)
    row.update(fields)


KINDS["a_residency_has_no_filler"] = without_filler
KINDS["a_residency_is_there_at_the_start"] = lambda mutant: without_filler(mutant, start=0)


@kind
def what_is_there_at_the_start_is_also_elsewhere(mutant: Mutant) -> None:
    rows = mutant.plan["residencies"]
    row = mutant.row(
        "residencies",
        lambda r: "slice" in r and "filled_by_task" not in r and "filled_by_transfer" not in r,
    )
    memory = memory_of(mutant, row)
    here = [r["offset"] + r["bytes"] for r in rows if r["memory"] == row["memory"]]
    offset = -(-max(here) // memory["alignment"]) * memory["alignment"]
    rows.append(dict(row, index=len(rows), offset=offset))


@kind
def two_residencies_have_each_others_numbers(mutant: Mutant) -> None:
    """References follow: the plan means the same."""
    one, other = mutant.two("residencies")
    rows = mutant.plan["residencies"]
    number = {one["index"]: other["index"], other["index"]: one["index"]}
    one["index"], other["index"] = other["index"], one["index"]
    rows.sort(key=lambda row: row["index"])
    for run in mutant.plan["tasks"]:
        for name in ("reads", "writes"):
            if name in run:
                run[name] = [number.get(index, index) for index in run[name]]
        if "scratch" in run:
            run["scratch"] = number.get(run["scratch"], run["scratch"])
    for move in mutant.plan["transfers"]:
        move["source"] = number.get(move["source"], move["source"])
        move["destinations"] = [number.get(index, index) for index in move["destinations"]]


replaced(
    "what_is_replaced_in_place_stays_a_cycle_longer",
    lambda m, old, new: old.update(end=new["end"] + m.random.choice([0, 1])),
)
replaced(
    "what_replaces_in_place_lies_elsewhere",
    lambda m, old, new: new.update(offset=new["offset"] + alignment(m, new)),
)
replaced(
    "what_replaces_in_place_is_there_earlier",
    lambda m, old, new: new.update(start=max(old["start"], new["start"] - 1)),
)


@kind
def what_is_replaced_in_place_is_used_by_another_task(mutant: Mutant) -> None:
    old, new = mutant.one_of(_in_place(mutant))
    row = mutant.row("tasks", lambda r: r.get("reads") and r["index"] != new["filled_by_task"])
    row["reads"][mutant.random.randrange(len(row["reads"]))] = old["index"]


@kind
def a_result_replaces_an_operand(mutant: Mutant) -> None:
    """As if in place, whether or not it may."""
    row = mutant.row("tasks", lambda row: reads(row) and writes(row))
    new = mutant.residency(row["writes"][0])
    old = mutant.residency(mutant.one_of(row["reads"]))
    new["offset"] = old["offset"]
    old["end"] = row["start"] + row["cycles"]


def _in_place(mutant: Mutant) -> list[tuple[Fields, Fields]]:
    """Return residencies of which the second one replaces the first one in place."""
    kept = mutant.plan["residencies"]
    return [
        (kept[read], kept[written])
        for task, run in zip(mutant.subject.problem["tasks"], mutant.plan["tasks"], strict=True)
        for a, b in task.get("in_place", ())
        for part, read in zip(task["reads"], run["reads"], strict=True)
        for buffer, written in zip(task["writes"], run["writes"], strict=True)
        if (part, buffer) == (a, b) and kept[read]["offset"] == kept[written]["offset"]
    ]


@kind
def a_transfer_comes_later_with_what_it_fills(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    comes(row, 1)
    for index in row["destinations"]:
        mutant.residency(index)["start"] += 1


@kind
def a_transfer_goes_through_another_channel(mutant: Mutant) -> None:
    engines = mutant.subject.machine["engines"]
    row = mutant.row("transfers", lambda row: engines[row["engine"]]["channels"] > 1)
    row["channel"] = mutant.other(engines[row["engine"]]["channels"], row["channel"])


@kind
def a_transfer_takes_the_channel_of_another_one(mutant: Mutant) -> None:
    one, other = mutant.two("transfers")
    one["engine"], one["channel"] = other["engine"], other["channel"]


@kind
def a_transfer_comes_from_another_residency_of_its_slice(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["source"] = mutant.row(
        "residencies",
        lambda kept: kept.get("slice") == row["slice"] and kept["index"] != row["source"],
    )["index"]


@kind
def a_transfer_comes_from_a_residency_in_the_same_memory(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    old = mutant.residency(row["source"])
    row["source"] = mutant.row(
        "residencies", lambda kept: kept["memory"] == old["memory"] and kept is not old
    )["index"]


@kind
def a_transfer_goes_to_one_more_that_names_it(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    rows, memories = mutant.plan["residencies"], len(mutant.subject.machine["memories"])
    first = mutant.residency(row["destinations"][0])
    memory = mutant.other(memories, first["memory"])
    rows.append(dict(first, index=len(rows), memory=memory))
    row["destinations"].append(len(rows) - 1)


@kind
def a_route_is_that_of_another_transfer(mutant: Mutant) -> None:
    one = mutant.row("transfers")
    one["route"] = list(mutant.row("transfers", lambda row: row["route"] != one["route"])["route"])


@kind
def a_transfer_moves_a_part_or_the_whole(mutant: Mutant) -> None:
    problem = mutant.subject.problem
    whole = {part["index"]: part["buffer"] for part in problem["slices"]}
    row = mutant.row(
        "transfers", lambda row: row["slice"] in whole or row["slice"] in whole.values()
    )
    old = row["slice"]
    parts = [part for part, buffer in whole.items() if buffer == old]
    row["slice"] = whole[old] if old in whole else mutant.one_of(parts)


@kind
def the_last_transfer_is_missing_and_nobody_names_it(mutant: Mutant) -> None:
    mutant.row("transfers")
    gone = mutant.plan["transfers"].pop()
    for kept in mutant.plan["residencies"]:
        if kept.get("filled_by_transfer") == gone["index"]:
            del kept["filled_by_transfer"]


@kind
def a_transfer_is_there_twice_with_its_destinations(mutant: Mutant) -> None:
    """A second copy of the same data, at the same place or behind everything."""
    rows, kept = mutant.plan["transfers"], mutant.plan["residencies"]
    row = mutant.row("transfers")
    new = []
    for index in row["destinations"]:
        new.append(len(kept))
        kept.append(dict(kept[index], index=len(kept), filled_by_transfer=len(rows)))
    rows.append(dict(row, index=len(rows), destinations=new))


@kind
def two_transfers_have_each_others_numbers(mutant: Mutant) -> None:
    """References follow: the plan means the same."""
    one, other = mutant.two("transfers")
    number = {one["index"]: other["index"], other["index"]: one["index"]}
    one["index"], other["index"] = other["index"], one["index"]
    mutant.plan["transfers"].sort(key=lambda row: row["index"])
    for kept in mutant.plan["residencies"]:
        if kept.get("filled_by_transfer") in number:
            kept["filled_by_transfer"] = number[kept["filled_by_transfer"]]


@kind
def an_output_is_stored_again(mutant: Mutant) -> None:
    """At the end, onto itself; what is there at the end stays, and the claims follow."""
    kept, moves, solve = (mutant.plan[n] for n in ("residencies", "transfers", "solve"))
    end = solve["makespan"]
    homes = [b.get("ends_in") for b in mutant.subject.problem["buffers"]]
    row = mutant.row(
        "transfers",
        lambda r: (
            r["slice"] < len(homes) and homes[r["slice"]] == kept[r["destinations"][0]]["memory"]
        ),
    )
    moves.append(dict(row, index=len(moves), destinations=[len(kept)]))
    comes(moves[-1], end - row["start"])
    solve["makespan"] = moves[-1]["end"]
    for one in kept:
        if one["end"] >= end or one["index"] == row["source"]:
            one["end"] = solve["makespan"]
    again = dict(kept[row["destinations"][0]], index=len(kept), start=end, end=solve["makespan"])
    kept.append(again | {"filled_by_transfer": moves[-1]["index"]})
    solve["dram_traffic"] += again["bytes"]


def claim(name: str, field: str, new: Callable[[Mutant, Fields], int]) -> None:
    """Add a kind: what the plan says of itself is otherwise."""
    KINDS[name] = lambda m: m.plan["solve"].update({field: new(m, m.plan["solve"])})


for quantity in ("makespan", "dram_traffic", "energy", "peak_spm"):
    claim(f"{quantity}_is_stated_more", quantity, lambda m, s, q=quantity: s[q] + 1)
    claim(f"{quantity}_is_stated_less", quantity, lambda m, s, q=quantity: max(0, s[q] - 1))
for name, step in (("the_bound_is_the_value", 0), ("the_bound_is_above_the_value", 1)):
    claim(name, "bound", lambda m, s, by=step: s[m.subject.problem["objective"][0]] + by)
claim("the_bound_is_negative", "bound", lambda m, solve: -1)


@kind
def everything_comes_later(mutant: Mutant) -> None:
    """What is there at cycle 0 stays there; the claim follows."""
    step = mutant.random.randint(1, 5)
    for row in (*mutant.plan["tasks"], *mutant.plan["transfers"]):
        comes(row, step)
    for kept in mutant.plan["residencies"]:
        kept["end"] += step
        if kept["start"] > 0 or "filled_by_transfer" in kept or "filled_by_task" in kept:
            kept["start"] += step
    mutant.plan["solve"]["makespan"] += step


@kind
def everything_from_a_cycle_on_comes_later(mutant: Mutant) -> None:
    cycle, step = mutant.cycle(), mutant.random.randint(1, 5)
    for row in (*mutant.plan["tasks"], *mutant.plan["transfers"]):
        comes(row, step if row["start"] >= cycle else 0)
    for kept in mutant.plan["residencies"]:
        kept["start"] += step if kept["start"] >= cycle > 0 else 0
        kept["end"] += step
    mutant.plan["solve"]["makespan"] += step


@kind
def the_plan_starts_again_where_it_ends(mutant: Mutant) -> None:
    for table in ("tasks", "residencies", "transfers"):
        mutant.plan[table] += [dict(row) for row in mutant.plan[table]]


VERSIONS = ("3.0", "1.1", "2", "", "2.x", "2.0.0")
TABLES = ("solve", "meta", "tensors", "tasks", "transfers")
KINDS |= {
    "the_plan_names_another_problem": lambda m: m.plan["meta"].update(problem_sha256="0" * 64),
    "the_plan_names_no_problem": lambda m: m.plan["meta"].pop("problem_sha256"),
    "there_is_a_field_too_many": lambda m: m.row(m.one_of(("tasks", "residencies"))).update(
        colour=1
    ),
    "the_version_is_another_one": lambda m: m.plan.update(format_version=m.one_of(VERSIONS)),
    "there_is_a_tensor_too_many": lambda m: m.plan["tensors"].append(
        {"index": rows_of(m, "tensors"), "address": 1 << 30}
    ),
    "a_field_is_missing": lambda m: (row := any_row(m)).pop(m.one_of(sorted(row))),
    "the_file_is_no_plan": lambda m: m.plan.update(format="spmilp-problem"),
    "a_table_is_missing": lambda m: m.plan.pop(m.one_of(TABLES)),
}
READ_WITH_PROBLEM.update({"the_plan_names_another_problem", "the_plan_names_no_problem"})
numbers("a_number_is_negative", lambda m, old: -1)
numbers("a_number_is_0", lambda m, old: 0)
numbers("a_number_is_a_little_other", lambda m, old: old + m.one_of((-1, 1, 64)))
numbers("a_number_is_any_other_one", lambda m, old: m.one_of(any_row(m).values()))
numbers("a_number_is_huge", lambda m, old: m.one_of((2**48, 2**48 + 1, 2**64)))
numbers(
    "a_number_is_of_another_type", lambda m, old: m.one_of((float(old), str(old), old > 0, [old]))
)


@kind
def a_number_is_null(mutant: Mutant) -> None:
    row = any_row(mutant)
    row[mutant.one_of(sorted(row))] = None


@kind
def several_numbers_are_any_others(mutant: Mutant) -> None:
    for _ in range(mutant.random.randint(2, 4)):
        row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers")))
        name = mutant.one_of(sorted(name for name in row if type(row[name]) is int))
        row[name] = mutant.random.randint(0, 40)


@kind
def a_newer_minor_version_has_a_field_more(mutant: Mutant) -> None:
    mutant.plan["format_version"] = "2.9"
    mutant.row("residencies")["colour"] = 1


@kind
def a_residency_lies_on_reserved_bytes(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: memory_of(mutant, r)["reserved"])
    row["offset"] = memory_of(mutant, row)["reserved"][0]["start"]


@kind
def a_residency_begins_where_its_memory_ends(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: memory_of(mutant, r)["size"] is not None)
    row["offset"] = memory_of(mutant, row)["size"]


def is_stream(mutant: Mutant) -> Fields:
    """Return the stream of a plan."""
    found: Fields = mutant.one_of([each for each in [mutant.plan.get("stream")] if each])
    return found


def stream_kind(name: str, change: Callable[[Mutant, Fields], None]) -> None:
    """Add a kind that changes a stream."""
    KINDS[f"stream_{name}"] = lambda mutant: change(mutant, is_stream(mutant))


def _periods(mutant: Mutant, stream: Fields, period: int) -> None:
    stream["period"] = mutant.plan["solve"]["period"] = max(1, period)


def _instances(mutant: Mutant, stream: Fields) -> list[int]:
    """Return further instances of a residency or a tensor."""
    rows = [row["instances"] for row in mutant.plan["residencies"] if row.get("instances")]
    found: list[int] = mutant.one_of([*rows, *filter(None, stream["instances"])])
    return found


def _has_more(mutant: Mutant, stream: Fields) -> None:
    row = mutant.row("residencies")
    row["instances"] = [*row.get("instances", []), 64 * mutant.random.randint(0, 40)]


def _moves_an_instance(mutant: Mutant, stream: Fields) -> None:
    _instances(mutant, stream)[0] = 64 * mutant.random.randint(0, 40)


def _begins_elsewhere(mutant: Mutant, stream: Fields) -> None:
    """Let inferences take the instances of others: of a state, that which is written."""
    row = mutant.row("residencies", lambda r: r.get("instances"))
    row["instances"], row["offset"] = [row["offset"], *row["instances"][:-1]], row["instances"][-1]


def _begins(mutant: Mutant, stream: Fields, step: int) -> None:
    stream["begins"] += step
    mutant.plan["solve"]["makespan"] -= step


def _is_once(mutant: Mutant, stream: Fields, row: Fields) -> bool:
    """Say whether a residency is of the prologue and for ever, but in no tensor of a DRAM."""
    return row["start"] < stream["begins"] < row["end"] and is_filled(row)


def _lies_on_another(mutant: Mutant, stream: Fields) -> None:
    """Let a permanent residency take the bytes of what comes and goes, perhaps periods later."""
    row = mutant.row("residencies", lambda r: _is_once(mutant, stream, r))
    other = mutant.row(
        "residencies", lambda r: r["memory"] == row["memory"] and r["start"] >= stream["begins"]
    )
    row["offset"] = mutant.one_of([other["offset"], *other.get("instances", [])])


def _is_busy_over_the_wrap(mutant: Mutant, stream: Fields) -> None:
    """Let a task or transfer go on into what its core or channel does in another period."""
    table, keys = mutant.one_of([("tasks", ["core"]), ("transfers", ["engine", "channel"])])
    one, other = mutant.two(table, lambda row: [row[key] for key in keys])
    length = one["cycles"] if table == "tasks" else one["end"] - one["start"]
    step = other["start"] - one["start"] - mutant.random.randint(0, length)
    comes(one, step + stream["period"] * mutant.random.randint(0, 2))


def _forgets_a_load(mutant: Mutant, stream: Fields) -> None:
    """Let what the prologue loads come with the first inference, or never leave its tensor."""
    row = mutant.row("transfers", lambda r: r["start"] < stream["begins"])
    step = stream["begins"] - row["start"] + mutant.random.randint(0, 9)
    for end in row["destinations"] * mutant.random.randint(0, 1):
        mutant.residency(end)["start"] += step
    comes(row, step)


def _lasts_for_periods(mutant: Mutant, stream: Fields) -> None:
    """Let something last for whole periods, or a cycle more or less: one, a few or very many."""
    row = mutant.row(mutant.one_of(("tasks", "transfers", "residencies")))
    many = mutant.one_of((1, 2, 3, 4, 5, 12, 13, 24, 10**7))
    length = max(1, many * stream["period"] + mutant.random.randint(-1, 1))
    for field in ("sent", "end"):
        if field in row:
            row[field] = row["start"] + length
    if "cycles" in row:
        row["cycles"] = length


def _has_any_period(mutant: Mutant, stream: Fields) -> None:
    """Let many inferences meet, or very few."""
    latency = mutant.plan["solve"]["makespan"]
    _periods(mutant, stream, mutant.one_of((1, 2, 3, latency, 3 * latency, 2**40)))


stream_kind("lasts_for_periods", _lasts_for_periods)
stream_kind("has_any_period", _has_any_period)
stream_kind("lacks_an_instance", lambda m, s: _instances(m, s).pop())
stream_kind("is_permanent_on_another", _lies_on_another)
stream_kind("is_busy_over_the_wrap", _is_busy_over_the_wrap)
stream_kind("forgets_a_load", _forgets_a_load)
stream_kind("shorter", lambda m, s: _periods(m, s, s["period"] - m.random.randint(1, 60)))
stream_kind("longer", lambda m, s: _periods(m, s, s["period"] + m.random.randint(1, 200)))
stream_kind("much_shorter", lambda m, s: _periods(m, s, s["period"] // m.random.randint(2, 5)))
stream_kind("begins_later", lambda m, s: _begins(m, s, m.random.randint(1, 90)))
stream_kind("begins_earlier", lambda m, s: _begins(m, s, -m.random.randint(1, 79)))
stream_kind("has_an_instance_less", lambda m, s: _instances(m, s).clear())
stream_kind("has_an_instance_more", _has_more)
stream_kind("has_instances_of_others", _begins_elsewhere)
stream_kind("has_an_instance_elsewhere", _moves_an_instance)
stream_kind("of_fewer_tensors", lambda m, s: s["instances"].pop())
stream_kind("is_none", lambda m, s: m.plan.pop("stream"))
