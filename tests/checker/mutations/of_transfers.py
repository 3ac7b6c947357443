"""Mutations of the rows of transfers."""

from tests.checker.mutations.mutant import Mutant, kind


@kind
def a_transfer_starts_a_cycle_earlier(mutant: Mutant) -> None:
    mutant.row("transfers", lambda row: row["start"] > 0)["start"] -= 1


@kind
def a_transfer_starts_a_cycle_later(mutant: Mutant) -> None:
    mutant.row("transfers")["start"] += 1


@kind
def a_transfer_starts_at_any_cycle(mutant: Mutant) -> None:
    mutant.row("transfers")["start"] = mutant.cycle()


@kind
def a_transfer_starts_when_another_one_does(mutant: Mutant) -> None:
    one, other = mutant.two("transfers")
    one["start"] = other["start"]


@kind
def a_transfer_takes_a_cycle_more(mutant: Mutant) -> None:
    mutant.row("transfers")["cycles"] += 1


@kind
def a_transfer_takes_a_cycle_less(mutant: Mutant) -> None:
    mutant.row("transfers", lambda row: row["cycles"] > 1)["cycles"] -= 1


@kind
def a_transfer_comes_later_with_what_it_fills(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["start"] += 1
    for index in row["destinations"]:
        mutant.residency(index)["start"] += 1


@kind
def a_transfer_goes_through_another_engine(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["engine"] = mutant.other(len(mutant.subject.machine["engines"]), row["engine"])


@kind
def a_transfer_goes_through_no_engine(mutant: Mutant) -> None:
    mutant.row("transfers")["engine"] = len(mutant.subject.machine["engines"])


@kind
def a_transfer_goes_through_another_channel(mutant: Mutant) -> None:
    engines = mutant.subject.machine["engines"]
    row = mutant.row("transfers", lambda row: engines[row["engine"]]["channels"] > 1)
    row["channel"] = mutant.other(engines[row["engine"]]["channels"], row["channel"])


@kind
def a_transfer_goes_through_a_channel_too_many(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["channel"] = mutant.subject.machine["engines"][row["engine"]]["channels"]


@kind
def a_transfer_takes_the_channel_of_another_one(mutant: Mutant) -> None:
    one, other = mutant.two("transfers")
    one["engine"], one["channel"] = other["engine"], other["channel"]


@kind
def a_transfer_comes_from_any_residency(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["source"] = mutant.other(len(mutant.plan["residencies"]), row["source"])


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
def a_transfer_comes_from_where_it_goes(mutant: Mutant) -> None:
    row = mutant.row("transfers", lambda row: row["destinations"])
    row["source"] = row["destinations"][0]


@kind
def a_transfer_goes_to_any_residency(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    place = mutant.random.randrange(len(row["destinations"]))
    old = row["destinations"][place]
    row["destinations"][place] = mutant.other(len(mutant.plan["residencies"]), old)


@kind
def two_transfers_swap_their_destinations(mutant: Mutant) -> None:
    one, other = mutant.two("transfers")
    one["destinations"], other["destinations"] = other["destinations"], one["destinations"]


@kind
def two_transfers_of_a_slice_swap_their_destinations(mutant: Mutant) -> None:
    one, other = mutant.two("transfers", lambda row: row["slice"])
    one["destinations"], other["destinations"] = other["destinations"], one["destinations"]


@kind
def a_transfer_goes_nowhere(mutant: Mutant) -> None:
    mutant.row("transfers")["destinations"] = []


@kind
def a_transfer_goes_to_one_more(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["destinations"].append(mutant.random.randrange(len(mutant.plan["residencies"])))


@kind
def a_transfer_goes_to_one_more_that_names_it(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    rows, memories = mutant.plan["residencies"], len(mutant.subject.machine["memories"])
    first = mutant.residency(row["destinations"][0])
    memory = mutant.other(memories, first["memory"])
    rows.append(dict(first, index=len(rows), memory=memory))
    row["destinations"].append(len(rows) - 1)


@kind
def a_transfer_goes_twice_to_one(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["destinations"].append(row["destinations"][0])


@kind
def a_multicast_goes_to_one_less(mutant: Mutant) -> None:
    mutant.row("transfers", lambda row: len(row["destinations"]) > 1)["destinations"].pop()


@kind
def a_multicast_names_its_destinations_in_another_order(mutant: Mutant) -> None:
    mutant.row("transfers", lambda row: len(row["destinations"]) > 1)["destinations"].reverse()


@kind
def a_route_has_a_link_less(mutant: Mutant) -> None:
    route = mutant.row("transfers", lambda row: row["route"])["route"]
    route.pop(mutant.random.randrange(len(route)))


@kind
def a_route_has_a_link_more(mutant: Mutant) -> None:
    count = len(mutant.subject.machine["links"])
    mutant.row("transfers")["route"].append(mutant.one_of(range(count)))


@kind
def a_route_goes_over_a_link_twice(mutant: Mutant) -> None:
    route = mutant.row("transfers", lambda row: row["route"])["route"]
    route.append(route[0])


@kind
def a_route_is_the_other_way_round(mutant: Mutant) -> None:
    mutant.row("transfers", lambda row: len(row["route"]) > 1)["route"].reverse()


@kind
def a_route_is_that_of_another_transfer(mutant: Mutant) -> None:
    one = mutant.row("transfers")
    one["route"] = list(mutant.row("transfers", lambda row: row["route"] != one["route"])["route"])


@kind
def a_route_goes_over_no_link(mutant: Mutant) -> None:
    mutant.row("transfers", lambda row: row["route"])["route"] = []


@kind
def a_route_goes_over_a_link_that_is_none(mutant: Mutant) -> None:
    mutant.row("transfers")["route"].append(len(mutant.subject.machine["links"]))


@kind
def a_transfer_moves_any_slice(mutant: Mutant) -> None:
    row = mutant.row("transfers")
    row["slice"] = mutant.other(mutant.subject.slices(), row["slice"])


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
def a_transfer_is_missing(mutant: Mutant) -> None:
    mutant.plan["transfers"].remove(mutant.row("transfers"))


@kind
def the_last_transfer_is_missing_and_nobody_names_it(mutant: Mutant) -> None:
    mutant.row("transfers")
    gone = mutant.plan["transfers"].pop()
    for kept in mutant.plan["residencies"]:
        if kept.get("filled_by_transfer") == gone["index"]:
            del kept["filled_by_transfer"]


@kind
def a_transfer_is_there_twice(mutant: Mutant) -> None:
    rows = mutant.plan["transfers"]
    rows.append(dict(mutant.row("transfers"), index=len(rows)))


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
def two_transfers_stand_in_another_order(mutant: Mutant) -> None:
    one, other = mutant.two("transfers")
    one["index"], other["index"] = other["index"], one["index"]


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
    for one in kept:
        if one["end"] >= end or one["index"] == row["source"]:
            one["end"] = end + row["cycles"]
    again = dict(kept[row["destinations"][0]], index=len(kept), start=end, end=end + row["cycles"])
    kept.append(again | {"filled_by_transfer": len(moves)})
    moves.append(dict(row, index=len(moves), start=end, destinations=[len(kept) - 1]))
    solve["makespan"] += row["cycles"]
    solve["dram_traffic"] += again["bytes"]
