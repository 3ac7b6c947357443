"""Mutations of the rows of residencies and of the addresses of tensors."""

from tests.checker.mutations.mutant import Fields, Mutant, kind


def _memory(mutant: Mutant, row: Fields) -> Fields:
    found: Fields = mutant.subject.machine["memories"][row["memory"]]
    return found


@kind
def an_offset_is_a_byte_higher(mutant: Mutant) -> None:
    mutant.row("residencies")["offset"] += 1


@kind
def an_offset_is_an_alignment_higher(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    row["offset"] += _memory(mutant, row)["alignment"]


@kind
def an_offset_is_an_alignment_lower(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: r["offset"] >= _memory(mutant, r)["alignment"])
    row["offset"] -= _memory(mutant, row)["alignment"]


@kind
def an_offset_is_any_aligned_address(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    memory = _memory(mutant, row)
    most = max(1, ((memory["size"] or 4096) - row["bytes"]) // memory["alignment"])
    row["offset"] = mutant.random.randrange(most) * memory["alignment"]


@kind
def an_offset_is_that_of_a_neighbour(mutant: Mutant) -> None:
    one, other = mutant.two("residencies", lambda row: row["memory"])
    one["offset"] = other["offset"]


@kind
def two_offsets_are_swapped(mutant: Mutant) -> None:
    one, other = mutant.two("residencies", lambda row: row["memory"])
    one["offset"], other["offset"] = other["offset"], one["offset"]


@kind
def two_offsets_of_equal_sizes_are_swapped(mutant: Mutant) -> None:
    one, other = mutant.two("residencies", lambda row: (row["memory"], row["bytes"]))
    one["offset"], other["offset"] = other["offset"], one["offset"]


@kind
def a_residency_begins_where_its_memory_ends(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: _memory(mutant, r)["size"] is not None)
    row["offset"] = _memory(mutant, row)["size"]


@kind
def a_residency_leaves_its_memory(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: _memory(mutant, r)["size"] is not None)
    memory = _memory(mutant, row)
    row["offset"] = memory["size"] // memory["alignment"] * memory["alignment"]
    row["offset"] -= (row["bytes"] - 1) // memory["alignment"] * memory["alignment"]


@kind
def a_residency_lies_on_reserved_bytes(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: _memory(mutant, r)["reserved"])
    row["offset"] = _memory(mutant, row)["reserved"][0]["start"]


@kind
def a_residency_begins_where_a_neighbour_ends(mutant: Mutant) -> None:
    one, other = mutant.two("residencies", lambda row: row["memory"])
    one["offset"] = other["offset"] + other["bytes"]


@kind
def a_residency_has_a_byte_more(mutant: Mutant) -> None:
    mutant.row("residencies")["bytes"] += 1


@kind
def a_residency_has_a_byte_less(mutant: Mutant) -> None:
    mutant.row("residencies", lambda row: row["bytes"] > 1)["bytes"] -= 1


@kind
def scratch_has_twice_the_bytes(mutant: Mutant) -> None:
    mutant.row("residencies", lambda row: "slice" not in row)["bytes"] *= 2


@kind
def a_residency_starts_a_cycle_earlier(mutant: Mutant) -> None:
    mutant.row("residencies", lambda row: row["start"] > 0)["start"] -= 1


@kind
def a_residency_starts_a_cycle_later(mutant: Mutant) -> None:
    mutant.row("residencies", lambda row: row["end"] - row["start"] > 1)["start"] += 1


@kind
def a_residency_starts_at_cycle_0(mutant: Mutant) -> None:
    mutant.row("residencies", lambda row: row["start"] > 0)["start"] = 0


@kind
def a_residency_starts_when_its_filler_ends(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda row: "filled_by_transfer" in row)
    move = mutant.plan["transfers"][row["filled_by_transfer"]]
    row["start"] = move["start"] + move["cycles"]


@kind
def a_residency_ends_a_cycle_earlier(mutant: Mutant) -> None:
    mutant.row("residencies", lambda row: row["end"] - row["start"] > 1)["end"] -= 1


@kind
def a_residency_ends_a_cycle_later(mutant: Mutant) -> None:
    mutant.row("residencies")["end"] += 1


@kind
def a_residency_ends_at_any_cycle(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    row["end"] = max(row["start"] + 1, mutant.cycle())


@kind
def a_residency_lasts_to_the_end(mutant: Mutant) -> None:
    mutant.row("residencies")["end"] = mutant.plan["solve"]["makespan"] + 1


@kind
def a_residency_ends_when_it_starts(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda row: row["start"] > 0)
    row["end"] = row["start"]


@kind
def a_residency_comes_at_another_time(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    long = row["end"] - row["start"]
    row["start"] = mutant.cycle()
    row["end"] = row["start"] + long


@kind
def a_residency_is_in_another_memory(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    row["memory"] = mutant.other(len(mutant.subject.machine["memories"]), row["memory"])


@kind
def a_residency_is_in_no_memory(mutant: Mutant) -> None:
    mutant.row("residencies")["memory"] = len(mutant.subject.machine["memories"])


@kind
def a_residency_holds_any_slice(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    row["slice"] = mutant.other(mutant.subject.slices(), row.get("slice"))


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


@kind
def a_residency_holds_no_slice(mutant: Mutant) -> None:
    del mutant.row("residencies", lambda row: "slice" in row)["slice"]


@kind
def a_residency_has_no_filler(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: "filled_by_task" in r or "filled_by_transfer" in r)
    row.pop("filled_by_task", None)
    row.pop("filled_by_transfer", None)


@kind
def a_residency_is_there_at_the_start(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: "filled_by_task" in r or "filled_by_transfer" in r)
    row.pop("filled_by_task", None)
    row.pop("filled_by_transfer", None)
    row["start"] = 0


@kind
def a_residency_names_another_task(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda row: "filled_by_task" in row)
    row["filled_by_task"] = mutant.other(len(mutant.plan["tasks"]), row["filled_by_task"])


@kind
def a_residency_names_another_transfer(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda row: "filled_by_transfer" in row)
    count = len(mutant.plan["transfers"])
    row["filled_by_transfer"] = mutant.other(count, row["filled_by_transfer"])


@kind
def a_residency_names_a_task_and_a_transfer(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda row: "filled_by_transfer" in row)
    row["filled_by_task"] = 0


@kind
def what_is_there_at_the_start_names_a_task(mutant: Mutant) -> None:
    row = mutant.row(
        "residencies", lambda r: "filled_by_task" not in r and "filled_by_transfer" not in r
    )
    row["filled_by_task"] = mutant.random.randrange(len(mutant.plan["tasks"]))


@kind
def a_residency_is_missing(mutant: Mutant) -> None:
    mutant.plan["residencies"].remove(mutant.row("residencies"))


@kind
def a_residency_is_there_twice(mutant: Mutant) -> None:
    rows = mutant.plan["residencies"]
    rows.append(dict(mutant.row("residencies"), index=len(rows)))


@kind
def what_is_there_at_the_start_is_also_elsewhere(mutant: Mutant) -> None:
    rows = mutant.plan["residencies"]
    row = mutant.row(
        "residencies",
        lambda r: "slice" in r and "filled_by_task" not in r and "filled_by_transfer" not in r,
    )
    memory = _memory(mutant, row)
    here = [r["offset"] + r["bytes"] for r in rows if r["memory"] == row["memory"]]
    offset = -(-max(here) // memory["alignment"]) * memory["alignment"]
    rows.append(dict(row, index=len(rows), offset=offset))


@kind
def two_residencies_stand_in_another_order(mutant: Mutant) -> None:
    one, other = mutant.two("residencies")
    one["index"], other["index"] = other["index"], one["index"]


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


@kind
def what_is_replaced_in_place_stays_a_cycle_longer(mutant: Mutant) -> None:
    old, new = mutant.one_of(_in_place(mutant))
    old["end"] = new["end"] + mutant.random.choice([0, 1])


@kind
def what_replaces_in_place_lies_elsewhere(mutant: Mutant) -> None:
    _, new = mutant.one_of(_in_place(mutant))
    new["offset"] += _memory(mutant, new)["alignment"]


@kind
def what_replaces_in_place_is_there_earlier(mutant: Mutant) -> None:
    old, new = mutant.one_of(_in_place(mutant))
    new["start"] = max(old["start"], new["start"] - 1)


@kind
def what_is_replaced_in_place_is_used_by_another_task(mutant: Mutant) -> None:
    old, new = mutant.one_of(_in_place(mutant))
    row = mutant.row("tasks", lambda r: r.get("reads") and r["index"] != new["filled_by_task"])
    row["reads"][mutant.random.randrange(len(row["reads"]))] = old["index"]


@kind
def a_result_replaces_an_operand(mutant: Mutant) -> None:
    """As if in place, whether or not it may."""
    row = mutant.row("tasks", lambda row: row.get("reads") and row.get("writes"))
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
def a_tensor_is_a_byte_higher(mutant: Mutant) -> None:
    mutant.row("tensors")["address"] += 1


@kind
def a_tensor_is_an_alignment_higher(mutant: Mutant) -> None:
    row = mutant.row("tensors")
    memory = mutant.subject.problem["tensors"][row["index"]]["memory"]
    row["address"] += mutant.subject.machine["memories"][memory]["alignment"]


@kind
def a_tensor_lies_where_another_one_lies(mutant: Mutant) -> None:
    one, other = mutant.two("tensors")
    one["address"] = other["address"]


@kind
def a_tensor_moves_with_what_lies_in_it(mutant: Mutant) -> None:
    """Behind all others, or onto them."""
    row = mutant.row("tensors")
    moved = mutant.subject.problem["tensors"][row["index"]]
    alignment = mutant.subject.machine["memories"][moved["memory"]]["alignment"]
    step = mutant.random.choice([alignment, 1 << 20])
    row["address"] += step
    for kept in mutant.plan["residencies"]:
        if kept["memory"] == moved["memory"] and _tensor_of(mutant, kept) == row["index"]:
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
def a_tensor_is_missing(mutant: Mutant) -> None:
    mutant.row("tensors")
    mutant.plan["tensors"].pop()


@kind
def there_is_a_tensor_too_many(mutant: Mutant) -> None:
    rows = mutant.plan["tensors"]
    rows.append({"index": len(rows), "address": 1 << 30})


@kind
def a_tensor_has_another_number(mutant: Mutant) -> None:
    mutant.row("tensors")["index"] += 1
