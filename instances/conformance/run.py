"""Run a checker on the conformance suite.

    python instances/conformance/run.py [OPTIONS] -- COMMAND {problem} {plan}

README.md says what it expects of the command. It needs Python 3.11 and nothing else.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def main() -> int:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--valid", type=int, default=0, help="exit code for a valid plan")
    parser.add_argument("--invalid", type=int, default=1, help="exit code for an invalid plan")
    parser.add_argument("--refused", type=int, default=2, help="exit code for unreadable files")
    parser.add_argument("--no-rules", action="store_true", help="compare exit codes only")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("command", nargs="+", help="with {problem} and {plan} for the files")
    arguments = parser.parse_args()
    cases = json.loads((FOLDER / "index.json").read_text())["cases"]
    rules = {rule for case in cases for rule in case["rules"]}
    wrong = asked = 0
    for case in cases:
        if arguments.only in case["name"]:
            asked += 1
            difference = _difference(case, arguments, rules)
            if difference:
                wrong += 1
                print(f"{case['name']} ({case['about']}): {difference}")
    print(f"{asked} cases, {wrong} of them judged otherwise than expected")
    return 1 if wrong else 0


def _difference(case: dict[str, Any], arguments: argparse.Namespace, rules: set[str]) -> str:
    """Return how a checker judges a case otherwise than expected; empty if it does not."""
    files = {name: str(FOLDER / case[name]) for name in ("problem", "plan")}
    command = [word.format_map(files) for word in arguments.command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expected = getattr(arguments, case["verdict"])
    if done.returncode != expected:
        return f"exit code {done.returncode}, expected {expected} ({case['verdict']})"
    found = {line.split(":")[0].strip() for line in done.stdout.splitlines()} & rules
    if not arguments.no_rules and found != set(case["rules"]):
        return f"rules {sorted(found)}, expected {case['rules']}"
    return ""


if __name__ == "__main__":
    sys.exit(main())
