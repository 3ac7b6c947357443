"""Mutations of addresses and sizes: of residencies and of tensors."""

from tests.checker.mutations.mutant import Fields, Mutant, kind


def memory_of(mutant: Mutant, row: Fields) -> Fields:
    """Return the memory of a residency."""
    found: Fields = mutant.subject.machine["memories"][row["memory"]]
    return found


@kind
def an_offset_is_a_byte_higher(mutant: Mutant) -> None:
    mutant.row("residencies")["offset"] += 1


@kind
def an_offset_is_an_alignment_higher(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    row["offset"] += memory_of(mutant, row)["alignment"]


@kind
def an_offset_is_an_alignment_lower(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: r["offset"] >= memory_of(mutant, r)["alignment"])
    row["offset"] -= memory_of(mutant, row)["alignment"]


@kind
def an_offset_is_any_aligned_address(mutant: Mutant) -> None:
    row = mutant.row("residencies")
    memory = memory_of(mutant, row)
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
    row = mutant.row("residencies", lambda r: memory_of(mutant, r)["size"] is not None)
    row["offset"] = memory_of(mutant, row)["size"]


@kind
def a_residency_leaves_its_memory(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: memory_of(mutant, r)["size"] is not None)
    memory = memory_of(mutant, row)
    row["offset"] = memory["size"] // memory["alignment"] * memory["alignment"]
    row["offset"] -= (row["bytes"] - 1) // memory["alignment"] * memory["alignment"]


@kind
def a_residency_lies_on_reserved_bytes(mutant: Mutant) -> None:
    row = mutant.row("residencies", lambda r: memory_of(mutant, r)["reserved"])
    row["offset"] = memory_of(mutant, row)["reserved"][0]["start"]


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
