"""``spmilp solvers`` lists every name that ``--solver`` takes, and what it is."""

import re

from cli.running import Run
from spmilp.registry import list_solvers, solver_names


def test_every_solver_has_one_description_and_every_description_a_solver() -> None:
    patterns = [
        re.compile(re.sub("[A-Z]+", "[^/]+", re.escape(one.name))) for one in list_solvers()
    ]
    names = solver_names()

    assert all(sum(bool(p.fullmatch(name)) for p in patterns) == 1 for name in names)
    assert all(any(p.fullmatch(name) for name in names) for p in patterns)


def test_the_list_is_printed_and_written_as_json(run: Run) -> None:
    ended = run("solvers")
    listed = run("solvers", "--json").json["solvers"]

    assert (ended.code, ended.err) == (0, "")
    assert [one["name"] for one in listed] == [one.name for one in list_solvers()]
    assert all(set(one) == {"name", "source", "decides", "limits"} for one in listed)
    assert all(all(one.values()) for one in listed)
    for one in listed:
        assert one["name"].split(":")[0] in ended.out
    assert "2311.18246" in next(one["source"] for one in listed if one["name"] == "cosma")
