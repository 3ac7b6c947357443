"""Mutation testing of the checker: which changes of its code does nobody notice?

Usage: python -m benchmarks.checker.killed OUT.csv [--only PACKAGE] [--every N] [--again]

Needs cosmic-ray (``pip install cosmic-ray``). Each mutant runs in a process of its own. The
conformance suite looks at it first; then, if nothing is noticed, the tests; last 400 of the mutants
of plans that the tests compare with the second checker, on small machines. OUT.csv has a row for
each mutant, with who has noticed it. Mutants that it has already are passed over; with ``--again``
those that nobody has noticed are tried again. Mutants in which only texts of messages or
annotations differ see the conformance suite alone. A mutant that takes longer than two minutes of
processor time counts as noticed.
"""

import argparse
import csv
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import Phase, settings

from benchmarks.checker.code_mutants import CodeMutant, install, mutants_of
from spmilp.errors import FileError
from spmilp.plan.file import read_plan
from spmilp.plan.plan import Plan
from spmilp.problem.file import read_problem
from spmilp.problem.problem import Problem
from tests.checker.mutations.mutant import READ_WITH_PROBLEM
from tests.checker.mutations.subjects import SUBJECTS
from tests.checker.test_mutants import mutants_compared

FIELDS = ("file", "operator", "number", "line", "noticed_by")
SUITE = Path("instances/conformance")
RELOADED = ("spmilp.checker", "tests", "conftest", "instances")
MOST_LINKS = 20
"""Of the machines of plans whose mutants are looked at; with more, a plan takes longer to check."""
SAMPLE = 400
"""Of these mutants."""
LONGEST = 120
"""Seconds of processor time of one mutant."""
TESTS = {
    "rules": ("rules",),
    "races": ("check", "waits"),
}
"""Tests of each package, by the ends of their names."""
MORE_TESTS = {"transfers": ("link_loads",), "sweeps": ("sweeps",)}
"""Tests of single modules, which take longer."""
HOMES = {"rules": "tests/checker", "races": "tests/commands"}
UNNOTICED, TEXTS = "", "texts"

Judged = tuple[str, Problem, Plan, frozenset[str]]
"""A name, a problem, a plan, and the rules that the checker says it breaks."""


def main() -> None:
    """Try the mutants that the table does not have, and print how many were noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", choices=list(TESTS))
    parser.add_argument("--again", action="store_true", help="try what nobody noticed again")
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="try only each N-th mutant"
    )
    given = parser.parse_args()
    settings.register_profile("first failure", phases=[Phase.explicit, Phase.generate])
    settings.load_profile("first failure")
    # Else each process would make it for itself.
    sys.path.insert(0, "tests")
    import_module("commands.helpers").ten_plans()
    files = [*sorted(Path("spmilp/checker/rules").glob("*.py")), Path("spmilp/checker/races.py")]
    mutants = [mutant for file in files for mutant in mutants_of(file)]
    tried = [m for m in mutants if given.only in (None, _package(m))][:: given.every]
    known = _known(given.out)
    suite, plans = list(cases()), Random(0).sample(list(mutants_of_plans()), SAMPLE)
    print(f"{len(tried)} mutants, {len(suite)} cases, {len(plans)} mutants of plans", flush=True)
    for number, mutant in enumerate(tried):
        noticed = known.get(mutant.key)
        if noticed is None or (given.again and noticed == UNNOTICED):
            known[mutant.key] = _in_fork(mutant, suite, plans)
            _write(given.out, mutants, known)
        if number % 100 == 99:
            print(f"{number + 1}: {dict(_tally(known))}", flush=True)
    print(dict(_tally(known)))


def _package(mutant: CodeMutant) -> str:
    return "races" if mutant.path.stem == "races" else "rules"


def _known(table: Path) -> dict[tuple[str, ...], str]:
    if not table.exists():
        return {}
    with table.open(newline="") as file:
        return {
            (row["file"], row["operator"], row["number"]): row["noticed_by"]
            for row in csv.DictReader(file)
        }


def _write(table: Path, mutants: list[CodeMutant], known: dict[tuple[str, ...], str]) -> None:
    """Write the table in the order of the files; the old one stays until the new one is whole."""
    rows = [(*m.key, m.line, known[m.key]) for m in mutants if m.key in known]
    made = table.with_suffix(".new")
    with made.open("w", newline="") as file:
        csv.writer(file).writerows([FIELDS, *rows])
    made.replace(table)


def _tally(known: dict[tuple[str, ...], str]) -> Counter[str]:
    return Counter(who.partition(":")[0] or "nobody" for who in known.values())


def cases() -> Iterator[Judged]:
    """Yield the cases of the conformance suite that can be read."""
    problems: dict[str, Problem] = {}
    for case in json.loads((SUITE / "index.json").read_text())["cases"]:
        if case["verdict"] == "refused":
            continue
        if case["problem"] not in problems:
            problems[case["problem"]] = read_problem(SUITE / case["problem"])
        problem, plan = problems[case["problem"]], read_plan(SUITE / case["plan"])
        yield case["name"], problem, plan, frozenset(case["rules"])


def mutants_of_plans() -> Iterator[Judged]:
    """Yield mutants of plans on small machines that the tests compare with the second checker."""
    check = import_module("spmilp.checker.check").check
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mutant.json"
        for name, make in SUBJECTS.items():
            subject = make()
            if len(subject.problem.machine.links) > MOST_LINKS:
                continue
            for kind, content in subject.mutants(Random(name), mutants_compared(name)):
                if kind in READ_WITH_PROBLEM:
                    continue
                file.write_text(json.dumps(content))
                try:
                    plan = read_plan(file)
                except FileError:
                    continue
                rules = frozenset(found.rule for found in check(subject.problem, plan))
                yield kind, subject.problem, plan, rules


def _in_fork(mutant: CodeMutant, suite: list[Judged], plans: list[Judged]) -> str:
    """Return who notices a mutant."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, LONGEST)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        noticed = _noticed_by(mutant, suite, plans)
        os.write(writing, noticed.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        noticed = pipe.read()
    _, status = os.waitpid(child, 0)
    return noticed if status == 0 else f"end: {os.waitstatus_to_exitcode(status)}"


def _noticed_by(mutant: CodeMutant, suite: list[Judged], plans: list[Judged]) -> str:
    package = _package(mutant)
    install(mutant, RELOADED)
    if package == "rules" and (who := _first_difference(suite)):
        return f"suite: {who}"
    if mutant.changes_texts_only():
        return TEXTS
    names = (*TESTS[package], *MORE_TESTS.get(mutant.path.stem, ()))
    files = [f"{HOMES[package]}/test_{name}.py" for name in names]
    if ended := pytest.main(["-q", "-x", "-m", "", "-p", "no:cacheprovider", *files]):
        return f"tests: {int(ended)}"
    if package == "rules" and (who := _first_difference(plans)):
        return f"plans: {who}"
    return UNNOTICED


def _first_difference(judged: list[Judged]) -> str:
    try:
        check: Callable[[Problem, Plan], tuple[object, ...]]
        check = import_module("spmilp.checker.check").check
    except Exception as error:
        return f"import, {type(error).__name__}"
    for name, problem, plan, rules in judged:
        try:
            found = {violation.rule for violation in check(problem, plan)}
        except Exception as error:
            return f"{name}, {type(error).__name__}"
        if found != rules:
            return name
    return ""


if __name__ == "__main__":
    sys.exit(main())
