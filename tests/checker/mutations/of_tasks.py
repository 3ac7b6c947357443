"""Mutations of the rows of tasks."""

from tests.checker.mutations.mutant import Mutant, kind


@kind
def a_task_starts_a_cycle_earlier(mutant: Mutant) -> None:
    mutant.row("tasks", lambda row: row["start"] > 0)["start"] -= 1


@kind
def a_task_starts_a_cycle_later(mutant: Mutant) -> None:
    mutant.row("tasks")["start"] += 1


@kind
def a_task_starts_at_any_cycle(mutant: Mutant) -> None:
    mutant.row("tasks")["start"] = mutant.cycle()


@kind
def a_task_starts_when_another_one_ends(mutant: Mutant) -> None:
    one, other = mutant.two("tasks")
    one["start"] = other["start"] + other["cycles"]


@kind
def two_tasks_of_a_core_swap_their_starts(mutant: Mutant) -> None:
    one, other = mutant.two("tasks", lambda row: row["core"])
    one["start"], other["start"] = other["start"], one["start"]


@kind
def a_task_takes_a_cycle_more(mutant: Mutant) -> None:
    mutant.row("tasks")["cycles"] += 1


@kind
def a_task_takes_a_cycle_less(mutant: Mutant) -> None:
    mutant.row("tasks", lambda row: row["cycles"] > 1)["cycles"] -= 1


@kind
def a_task_takes_what_another_one_takes(mutant: Mutant) -> None:
    one, other = mutant.two("tasks")
    one["cycles"] = other["cycles"]


@kind
def a_task_runs_on_another_core(mutant: Mutant) -> None:
    row = mutant.row("tasks")
    row["core"] = mutant.other(len(mutant.subject.machine["cores"]), row["core"])


@kind
def a_task_runs_on_another_core_of_the_same_memory(mutant: Mutant) -> None:
    row, cores = mutant.row("tasks"), mutant.subject.machine["cores"]
    memory = cores[row["core"]]["memory"]
    row["core"] = mutant.one_of(
        core["index"] for core in cores if core["memory"] == memory and core["index"] != row["core"]
    )


@kind
def two_tasks_swap_their_cores(mutant: Mutant) -> None:
    one, other = mutant.two("tasks")
    one["core"], other["core"] = other["core"], one["core"]


@kind
def a_task_runs_on_no_core(mutant: Mutant) -> None:
    mutant.row("tasks")["core"] = len(mutant.subject.machine["cores"])


@kind
def a_task_reads_any_residency(mutant: Mutant) -> None:
    row = mutant.row("tasks", lambda row: row.get("reads"))
    place = mutant.random.randrange(len(row["reads"]))
    row["reads"][place] = mutant.other(len(mutant.plan["residencies"]), row["reads"][place])


@kind
def a_task_reads_another_residency_of_the_same_slice(mutant: Mutant) -> None:
    row = mutant.row("tasks", lambda row: row.get("reads"))
    place = mutant.random.randrange(len(row["reads"]))
    old = mutant.residency(row["reads"][place])
    row["reads"][place] = mutant.row(
        "residencies", lambda new: new is not old and new.get("slice") == old.get("slice")
    )["index"]


@kind
def a_task_reads_another_slice_of_the_same_memory(mutant: Mutant) -> None:
    row = mutant.row("tasks", lambda row: row.get("reads"))
    place = mutant.random.randrange(len(row["reads"]))
    old = mutant.residency(row["reads"][place])
    row["reads"][place] = mutant.row(
        "residencies", lambda new: new is not old and new["memory"] == old["memory"]
    )["index"]


@kind
def the_reads_of_a_task_are_swapped(mutant: Mutant) -> None:
    reads = mutant.row("tasks", lambda row: len(row.get("reads", ())) > 1)["reads"]
    reads.append(reads.pop(0))


@kind
def a_task_reads_less(mutant: Mutant) -> None:
    mutant.row("tasks", lambda row: row.get("reads"))["reads"].pop()


@kind
def a_task_reads_more(mutant: Mutant) -> None:
    row = mutant.row("tasks", lambda row: row.get("reads"))
    row["reads"].append(row["reads"][0])


@kind
def a_task_writes_another_residency(mutant: Mutant) -> None:
    row = mutant.row("tasks", lambda row: row.get("writes"))
    row["writes"][0] = mutant.other(len(mutant.plan["residencies"]), row["writes"][0])


@kind
def a_task_writes_what_it_reads(mutant: Mutant) -> None:
    row = mutant.row("tasks", lambda row: row.get("writes") and row.get("reads"))
    row["writes"][0] = row["reads"][0]


@kind
def a_task_writes_nothing(mutant: Mutant) -> None:
    del mutant.row("tasks", lambda row: row.get("writes"))["writes"]


@kind
def two_tasks_swap_what_they_write(mutant: Mutant) -> None:
    one = mutant.row("tasks", lambda row: row.get("writes"))
    other = mutant.row("tasks", lambda row: row.get("writes") and row is not one)
    one["writes"], other["writes"] = other["writes"], one["writes"]


@kind
def a_task_has_no_scratch(mutant: Mutant) -> None:
    del mutant.row("tasks", lambda row: row.get("scratch") is not None)["scratch"]


@kind
def a_task_has_any_residency_for_scratch(mutant: Mutant) -> None:
    row = mutant.row("tasks")
    row["scratch"] = mutant.other(len(mutant.plan["residencies"]), row.get("scratch"))


@kind
def two_tasks_share_their_scratch(mutant: Mutant) -> None:
    one = mutant.row("tasks", lambda row: row.get("scratch") is not None)
    other = mutant.row("tasks", lambda row: row.get("scratch") is not None and row is not one)
    other["scratch"] = one["scratch"]


@kind
def a_task_is_missing(mutant: Mutant) -> None:
    mutant.plan["tasks"].remove(mutant.row("tasks"))


@kind
def the_last_task_is_missing(mutant: Mutant) -> None:
    mutant.row("tasks")
    mutant.plan["tasks"].pop()


@kind
def a_task_is_there_twice(mutant: Mutant) -> None:
    mutant.plan["tasks"].append(dict(mutant.row("tasks"), index=len(mutant.plan["tasks"])))


@kind
def two_tasks_stand_in_another_order(mutant: Mutant) -> None:
    one, other = mutant.two("tasks")
    one["index"], other["index"] = other["index"], one["index"]


@kind
def a_task_goes_to_another_core_with_its_results(mutant: Mutant) -> None:
    """As it would be if nothing of its operands mattered."""
    row, cores = mutant.row("tasks"), mutant.subject.machine["cores"]
    row["core"] = mutant.other(len(cores), row["core"])
    for index in (*row.get("writes", ()), *([] if "scratch" not in row else [row["scratch"]])):
        mutant.residency(index)["memory"] = cores[row["core"]]["memory"]


@kind
def a_task_and_its_results_come_a_cycle_later(mutant: Mutant) -> None:
    row = mutant.row("tasks", lambda row: row.get("writes"))
    row["start"] += 1
    for index in row["writes"]:
        mutant.residency(index)["start"] += 1
