"""Mutations of the rows of residencies: times, contents, fillers, numbers, bytes in place."""

from tests.checker.mutations.mutant import Fields, Mutant, kind
from tests.checker.mutations.of_addresses import memory_of


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
def an_operand_ends_early_and_a_copy_with_its_reader(mutant: Mutant) -> None:
    """The value is not lost, and yet not where it is read."""
    run = mutant.row("tasks", lambda row: row.get("reads"))
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
    memory = memory_of(mutant, row)
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
    new["offset"] += memory_of(mutant, new)["alignment"]


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
