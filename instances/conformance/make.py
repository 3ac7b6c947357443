"""Write the conformance suite: ``python -m instances.conformance.make``.

The same code gives the same bytes. Both checkers must say of each case what the suite says.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from instances.conformance.bases import BASES, PINNED, STATE, STREAM, WITHOUT_CONTROLLER
from spmilp.plan.file import read_plan
from spmilp.plan.plan import Plan
from spmilp.problem.file import problem_sha256, read_problem
from spmilp.problem.problem import Problem
from tests.checker.mutations import KINDS
from tests.checker.mutations.mutant import Fields, Mutant
from tests.checker.mutations.verdicts import Pair, pair

FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plan, its problem as the contents of files, and what is to be said of them."""

    base: str
    problem: Fields
    plan: str
    rules: tuple[str, ...]
    about: str

    @property
    def verdict(self) -> str:
        """``valid``, ``invalid`` or ``refused``."""
        return "valid" if not self.rules else "refused" if "refused" in self.rules else "invalid"


def as_text(value: Any, depth: int = 0) -> str:
    """Return JSON as spmilp writes it; but there may be anything in it."""
    pad, end = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    if isinstance(value, dict) and depth < 2 and value:
        fields = (f"{pad}{json.dumps(k)}: {as_text(v, depth + 1)}" for k, v in value.items())
        return f"{{{','.join(fields)}{end}}}" + "\n" * (depth == 0)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{','.join(pad + json.dumps(row) for row in value)}{end}]"
    return json.dumps(value)


def cases() -> Iterator[Case]:
    """Yield all cases of the suite."""
    bases = {
        name: _with_kept_plan(f"valid-{number}-{name}", *make())
        for number, (name, (_, make)) in enumerate(BASES.items(), start=1)
    }
    for name, (about, _) in BASES.items():
        yield _valid(name, bases[name], about)
    listed = yaml.safe_load((FOLDER / "cases.yaml").read_text())
    for name, kind, chance, broken in listed["mutated"]:
        subject = bases[name].subject
        mutant = Mutant(subject, Random(f"{kind} {chance}"))
        KINDS[kind](mutant)
        yield Case(
            base=name, problem=subject.problem, plan=as_text(mutant.plan),
            rules=tuple(broken.split()), about=kind.replace("_", " "),
        )  # fmt: skip
    for name, make in WITHOUT_CONTROLLER.items():
        problem, plan = make()
        bases[name] = pair(problem, plan())
    refused = [{"base": "remote", "rules": "refused", **row} for row in listed["refused"]]
    with TemporaryDirectory() as folder:
        for row in (*listed["varied"], *refused):
            yield _varied(bases[row["base"]], row, Path(folder) / "problem.json")
    subject = bases["remote"].subject
    for row in listed["written"]:
        before, _, after = as_text(subject.plan).rpartition(row["text"])
        yield Case(
            base="remote", problem=subject.problem, plan=before + row["by"] + after,
            rules=("refused",), about=row["about"],
        )  # fmt: skip
    about, make = PINNED
    pinned = make()
    yield _valid("pinned", pinned, about)
    with TemporaryDirectory() as folder:
        for row in listed["pinned"]:
            yield _varied(pinned, {"base": "pinned", **row}, Path(folder) / "problem.json")
    about, make = STREAM
    made = make()
    stream = _with_kept_plan("valid-43-stream", made.problem, lambda: made.plan)
    yield _valid("stream", stream, about)
    with TemporaryDirectory() as folder:
        for row in listed["streamed"]:
            yield _varied(stream, {"base": "stream", **row}, Path(folder) / "problem.json")
    about, make = STATE
    state = make()
    yield _valid("state", state, about)
    with TemporaryDirectory() as folder:
        for row in listed["states"]:
            yield _varied(state, {"base": "state", **row}, Path(folder) / "problem.json")


def _with_kept_plan(name: str, problem: Problem, plan: Callable[[], Plan]) -> Pair:
    """Return a problem with the plan that the suite has of it: no change of a solver changes it."""
    file = FOLDER / "plans" / f"{name}.json"
    return pair(problem, read_plan(file) if file.exists() else plan())


def _valid(name: str, base: Pair, about: str) -> Case:
    plan = as_text(base.subject.plan)
    return Case(base=name, problem=base.subject.problem, plan=plan, rules=(), about=about)


def _varied(base: Pair, row: dict[str, Any], file: Path) -> Case:
    """Return a case in which a field of the problem, or fields of the plan, have other values."""
    problem, plan = deepcopy(base.subject.problem), deepcopy(base.subject.plan)
    if "field" in row:
        _put(problem, row["field"].split("."), row["value"])
    for field, value in row.get("plan", {}).items():
        _put(plan, field.split("."), value)
    plan["meta"]["problem_sha256"] = ""
    if row["rules"] != "refused":
        file.write_text(json.dumps(problem))
        plan["meta"]["problem_sha256"] = problem_sha256(read_problem(file))
    return Case(
        base=row["base"], problem=problem, plan=as_text(plan), rules=tuple(row["rules"].split()),
        about=row["about"],
    )  # fmt: skip


def _put(content: Any, path: list[str], value: object) -> None:
    """Give a field of a file another value; ``*`` stands for all rows."""
    first, *rest = path
    for key in range(len(content)) if first == "*" else [int(first) if first.isdigit() else first]:
        if rest:
            _put(content[key], rest, value)
        else:
            content[key] = value


def files() -> dict[str, str]:
    """Return the texts of all files of the suite by their paths in its folder."""
    counts, index, found = Counter[str](), [], dict[str, str]()
    homes: dict[str, str] = {}
    for case in cases():
        leading = case.rules[0] if case.rules else case.verdict
        counts[leading] += 1
        name = f"{leading.replace('_', '-')}-{counts[leading]}-{case.base}"
        problem = as_text(case.problem)
        home = homes.setdefault(problem, name if case.base in homes.values() else case.base)
        found[f"problems/{home}.json"] = problem
        found[f"plans/{name}.json"] = case.plan
        index.append(
            {
                "name": name,
                "problem": f"problems/{home}.json",
                "plan": f"plans/{name}.json",
                "verdict": case.verdict,
                "rules": [] if case.verdict == "refused" else list(case.rules),
                "about": case.about,
            }
        )
    return found | {"index.json": as_text({"cases": index})}


def main() -> None:
    """Write what has changed, and remove what is no longer part of the suite."""
    made = files()
    for path in FOLDER.rglob("*.json"):
        if str(path.relative_to(FOLDER)) not in made:
            path.unlink()
    for name, text in made.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    print(f"{len(made)} files")


if __name__ == "__main__":
    main()
