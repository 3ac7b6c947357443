"""``spmilp machines``, ``solvers`` and ``bound``: what is known without a plan."""

import re
from pathlib import Path

import pytest

from spmilp.registry import list_solvers, solver_names
from tests.acceptance.doors import PROBLEMS, Run
from tests.frontend.running import model_of, saved


def test_a_machine_is_shown_with_its_sources(run: Run) -> None:
    ended = run("machines", "edge16")
    assert (ended.code, ended.err) == (0, "")
    for text in ("core        16", "4 channels, 8 B/cycle", "unverified", "[1] ", "1.0 MiB"):
        assert text in ended.out


def test_json_has_the_source_of_each_parameter(run: Run) -> None:
    found = run("machines", "epiphany3", "--json").json
    assert len(found["machine"]["cores"]) == 16
    assert all(set(p) == {"field", "value", "source", "verified"} for p in found["parameters"])
    unverified = [p["field"] for p in found["parameters"] if not p["verified"]]
    assert found["machine"]["unverified"] == unverified


def test_every_solver_has_one_description_and_every_description_a_solver() -> None:
    patterns = [re.compile(re.sub("[A-Z]+", "[^/]+", re.escape(name))) for name in list_solvers()]
    names = solver_names()
    assert all(sum(bool(p.fullmatch(name)) for p in patterns) == 1 for name in names)
    assert all(any(p.fullmatch(name) for name in names) for p in patterns)


def test_solvers_are_listed_with_their_sources(run: Run) -> None:
    ended, listed = run("solvers"), run("solvers", "--json").json["solvers"]
    assert (ended.code, ended.err) == (0, "")
    assert [one["name"] for one in listed] == list(list_solvers())
    assert all(set(one) == {"name", "source", "decides", "limits"} for one in listed)
    assert all(all(one.values()) for one in listed)
    assert all(one["name"].split(":")[0] in ended.out for one in listed)


def test_with_pins_bounds_are_those_of_plans_that_keep_to_them(run: Run, tmp_path: Path) -> None:
    problem = PROBLEMS / "layers-20t-3c.json"

    def values(*more: object) -> dict[str, int]:
        found = run("bound", problem, "--json", *more).json
        return {each["name"]: each["value"] for each in found["bounds"]}

    pins = tmp_path / "pins.yaml"
    pins.write_text("forbid_cores: [core1, core2]")
    assert values("--pins", pins)["work"] > 2.5 * values()["work"]
    pins.write_text("forbid_cores: core_9")
    assert "no core core_9" in run("bound", problem, "--pins", pins).err


@pytest.mark.parametrize(
    "arguments",
    [
        ("bound",),
        ("explain", "--groups"),
        ("compare", "--solvers", "list"),
        pytest.param(("sweep", "--solver", "list", "--spm", "64k"), marks=pytest.mark.full),
    ],
)
def test_verbs_take_values_of_inputs(run: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    graph = """g (float[4] x, int64 n, bool c) => (float[4] y) {
        y = If(c) <then_branch = t () => (float[4] a) { a = Neg(x) },
                   else_branch = e () => (float[4] b) { b = Exp(x) }> }"""
    model = saved(tmp_path, model_of(graph))
    ended = run(arguments[0], model, *arguments[1:], "--input", "n=3", "--input", "c=true")
    assert ended.code == 0, ended.err
