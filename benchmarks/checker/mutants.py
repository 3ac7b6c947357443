"""Compare the checker with the second checker on mutants of plans.

Usage: python -m benchmarks.checker.mutants [--count N] [--seed N] [--plans WORD] [-o FOLDER]

The plans are of every solver and on every preset. Both checkers must report the same rules of each
mutant, or both refuse to read it. Those of which they do not are written to the folder. Exits with
1 if there are any.
"""

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time

from tests.checker.mutations.subjects import MORE, SUBJECTS
from tests.checker.mutations.verdicts import REFUSED


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=20_000, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plans", default="", help="those with this in their names, as stream")
    parser.add_argument("-o", "--output", type=Path, help="folder for what they disagree on")
    arguments = parser.parse_args()
    began, total = process_time(), Counter[str]()
    kinds, machines, rules = set[str](), set[str](), Counter[str]()
    every = SUBJECTS | MORE
    makers = {name: make for name, make in every.items() if arguments.plans in name}
    with TemporaryDirectory() as folder:
        for number, (name, make) in enumerate(makers.items()):
            subject, found = make(), Counter[str]()
            machines.add(subject.problem.machine.name)
            left = arguments.count - total["mutants"]
            share = -(-left // (len(makers) - number))
            random = Random(f"{arguments.seed} {name}")
            while found["mutants"] < share:
                for kind, plan in subject.mutants(random, share - found["mutants"]):
                    one, other = subject.verdicts(kind, plan, Path(folder) / "mutant.json")
                    kinds.add(kind)
                    rules.update(one)
                    verdict = "accepted" if not one else "refused" if one == REFUSED else "rejected"
                    found.update(["mutants", verdict])
                    if one != other:
                        found["disagreements"] += 1
                        print(f"{name}: {kind}: {sorted(one)} and {sorted(other)}", flush=True)
                        _keep(arguments.output, f"{name}-{kind}-{total['mutants']}", plan)
            print(f"{name:50} {dict(found)}", flush=True)
            total.update(found)
    print(f"{len(kinds)} kinds, {len(machines)} machines, {len(makers)} plans: {dict(total)}")
    print(f"rules reported: {dict(rules.most_common())}; {process_time() - began:.0f} CPU seconds")
    return 1 if total["disagreements"] else 0


def _keep(folder: Path | None, name: str, plan: object) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name.replace(' ', '_')}.json").write_text(json.dumps(plan))


if __name__ == "__main__":
    sys.exit(main())
