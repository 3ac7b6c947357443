"""``spmilp machines`` lists the presets and shows where their numbers come from."""

from cli.running import Run


def test_a_machine_is_shown_with_its_sources(run: Run) -> None:
    ended = run("machines", "edge16")

    assert (ended.code, ended.err) == (0, "")
    for text in ("core        16", "1,024 MAC/cycle", "unverified", "[1] ", "1.0 MiB"):
        assert text in ended.out


def test_json_has_the_source_of_each_parameter(run: Run) -> None:
    found = run("machines", "epiphany3", "--json").json

    assert len(found["machine"]["cores"]) == 16
    assert all(set(p) == {"field", "value", "source", "verified"} for p in found["parameters"])
    unverified = [p["field"] for p in found["parameters"] if not p["verified"]]
    assert found["machine"]["unverified"] == unverified


def test_an_unknown_machine_is_an_error_that_names_near_ones(run: Run) -> None:
    ended = run("machines", "epiphany5")
    assert (ended.code, ended.out) == (3, "")
    assert "did you mean epiphany" in ended.err
