"""Mutations of claims, of the whole plan and of the file's form."""

from tests.checker.mutations.mutant import KINDS, READ_WITH_PROBLEM, Change, Mutant, kind


def _claim(name: str, step: int) -> None:
    def change(mutant: Mutant) -> None:
        mutant.plan["solve"][name] = max(0, mutant.plan["solve"][name] + step)

    KINDS[f"{name}_is_stated_{'more' if step > 0 else 'less'}"] = change


for quantity in ("makespan", "dram_traffic", "energy", "peak_spm"):
    _claim(quantity, 1)
    _claim(quantity, -1)


def read_with_problem(change: Change) -> Change:
    """Add a kind that only a reader notices that has the problem."""
    READ_WITH_PROBLEM.add(change.__name__)
    return kind(change)


@kind
def the_bound_is_the_value(mutant: Mutant) -> None:
    solve = mutant.plan["solve"]
    solve["bound"] = solve[mutant.subject.problem["objective"][0]]


@kind
def the_bound_is_above_the_value(mutant: Mutant) -> None:
    solve = mutant.plan["solve"]
    solve["bound"] = solve[mutant.subject.problem["objective"][0]] + 1


@kind
def the_bound_is_negative(mutant: Mutant) -> None:
    mutant.plan["solve"]["bound"] = -1


@kind
def everything_comes_later(mutant: Mutant) -> None:
    """What is there at cycle 0 stays there; the claim follows."""
    step = mutant.random.randint(1, 5)
    for row in (*mutant.plan["tasks"], *mutant.plan["transfers"]):
        row["start"] += step
    for kept in mutant.plan["residencies"]:
        kept["end"] += step
        if kept["start"] > 0 or "filled_by_transfer" in kept or "filled_by_task" in kept:
            kept["start"] += step
    mutant.plan["solve"]["makespan"] += step


@kind
def everything_from_a_cycle_on_comes_later(mutant: Mutant) -> None:
    cycle, step = mutant.cycle(), mutant.random.randint(1, 5)
    for row in (*mutant.plan["tasks"], *mutant.plan["transfers"]):
        row["start"] += step if row["start"] >= cycle else 0
    for kept in mutant.plan["residencies"]:
        kept["start"] += step if kept["start"] >= cycle > 0 else 0
        kept["end"] += step
    mutant.plan["solve"]["makespan"] += step


@kind
def the_plan_starts_again_where_it_ends(mutant: Mutant) -> None:
    for table in ("tasks", "residencies", "transfers"):
        mutant.plan[table] += [dict(row) for row in mutant.plan[table]]


@read_with_problem
def the_plan_names_another_problem(mutant: Mutant) -> None:
    mutant.plan["meta"]["problem_sha256"] = "0" * 64


@read_with_problem
def the_plan_names_no_problem(mutant: Mutant) -> None:
    del mutant.plan["meta"]["problem_sha256"]


@kind
def there_is_a_field_too_many(mutant: Mutant) -> None:
    mutant.row(mutant.one_of(("tasks", "residencies")))["colour"] = 1


@kind
def a_newer_minor_version_has_a_field_more(mutant: Mutant) -> None:
    mutant.plan["format_version"] = "1.9"
    mutant.row("residencies")["colour"] = 1


@kind
def the_version_is_another_one(mutant: Mutant) -> None:
    mutant.plan["format_version"] = mutant.one_of(("2.0", "0.9", "1", "", "1.x", "1.0.0"))


@kind
def the_file_is_no_plan(mutant: Mutant) -> None:
    mutant.plan["format"] = "spmilp-problem"


@kind
def a_field_is_missing(mutant: Mutant) -> None:
    row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers", "tensors")))
    del row[mutant.one_of(sorted(row))]


@kind
def a_table_is_missing(mutant: Mutant) -> None:
    del mutant.plan[mutant.one_of(("solve", "meta", "tensors", "tasks", "transfers"))]


@kind
def a_number_is_of_another_type(mutant: Mutant) -> None:
    row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers", "tensors")))
    name = mutant.one_of(sorted(name for name in row if isinstance(row[name], int)))
    row[name] = mutant.one_of((float(row[name]), str(row[name]), row[name] > 0, [row[name]]))


@kind
def a_number_is_null(mutant: Mutant) -> None:
    row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers", "tensors")))
    row[mutant.one_of(sorted(row))] = None


@kind
def a_number_is_negative(mutant: Mutant) -> None:
    row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers", "tensors")))
    row[mutant.one_of(sorted(name for name in row if isinstance(row[name], int)))] = -1


@kind
def a_number_is_0(mutant: Mutant) -> None:
    row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers", "tensors")))
    row[mutant.one_of(sorted(name for name in row if isinstance(row[name], int)))] = 0


@kind
def a_number_is_huge(mutant: Mutant) -> None:
    row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers", "tensors")))
    name = mutant.one_of(sorted(name for name in row if isinstance(row[name], int)))
    row[name] = mutant.one_of((2**48, 2**48 + 1, 2**64))


@kind
def several_numbers_are_any_others(mutant: Mutant) -> None:
    for _ in range(mutant.random.randint(2, 4)):
        row = mutant.row(mutant.one_of(("tasks", "residencies", "transfers")))
        name = mutant.one_of(sorted(name for name in row if type(row[name]) is int))
        row[name] = mutant.random.randint(0, 40)
