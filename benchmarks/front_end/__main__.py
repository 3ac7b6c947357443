"""Solve and replay models that others' programs wrote, and count what becomes of them.

Usage: python -m benchmarks.front_end [--only PART ...] [--machines M ...] [--effort quick]
           [--limit 2m] [--folder FOLDER]

Parts: `exports` of modern networks with random weights from PyTorch, timm and transformers by both
exporters; `quantised` networks, as onnxruntime's quantisers write them; `cases`, ONNX's own of each
node. A part whose packages are not installed is skipped. Models go to FOLDER, a temporary one by
default; nothing is downloaded.

Each is solved with `list` on each machine, checked, and replayed on random inputs, cases on their
own. What becomes of a model: `right`; `refused`, with the reason; `no plan` that fits; `wrong`, as
the replay says; `fault`, an error that is none of spmilp's own, a plan that the checker rejects,
or no end within the limit, in seconds of the processor. Exits with 1 if there are any of these two.
"""

import argparse
import json
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import onnx

import spmilp
from spmilp.errors import DoesNotFitError, ExitCode, SpmilpError
from spmilp.quantities import duration
from tests.operators.operator_sets import cases

Row = dict[str, Any]
BAD = ("wrong", "fault")


def models(part: str, folder: Path) -> Iterator[tuple[str, Path | None, str, Path | None]]:
    """Yield each model's name and file, or why there is none, and a file of its inputs."""
    if part != "cases":
        module = import_module(f"benchmarks.front_end.{part}")
        for name, path, why in getattr(module, part)(folder):
            yield name, path, why, None
        return
    path, values = folder / "case.onnx", folder / "case.npz"
    for case in cases(older_sets=False):
        # With constants in all inputs but the first, where there are several.
        if case.name.endswith(", constants") or len(case.feeds) == 1:
            onnx.save(case.model, path)
            np.savez(values, **case.feeds, **case.expected[-1])
            yield case.name.removesuffix(", constants"), path, "", values


def outcome(model: Path, machine: str, values: Path | None, *, effort: str, limit: float) -> Row:
    """Return what becomes of a model on a machine."""
    began = process_time()

    def give_up(*_: Any) -> None:
        raise TimeoutError(f"no end within {limit:.0f} s")

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, limit)
    row: Row = {"status": "right", "why": ""}
    try:
        result = spmilp.solve(model, machine, solver="list", effort=effort)
        if result.plan is None:
            row = {"status": "fault" if result.violations else "no plan", "why": result.reason}
        else:
            row["makespan"], row["tasks"] = result.makespan, len(result.problem.tasks)
            row["solved"] = round(process_time() - began, 1)
            found = result.replay(input=values)
            if not found.within.all():
                row |= {"status": "wrong", "why": next(filter(None, found.why))}
    except DoesNotFitError as error:
        row |= {"status": "no plan", "why": str(error)}
    except SpmilpError as error:
        is_wrong = error.exit_code is ExitCode.PLAN_INVALID
        row |= {"status": "wrong" if is_wrong else "refused", "why": str(error)}
    except Exception as error:  # What is none of spmilp's own is what is looked for.
        row |= {"status": "fault", "why": f"{type(error).__name__}: {error}"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return row | {"seconds": round(process_time() - began, 1)}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parts = ("exports", "quantised", "cases")
    parser.add_argument("--only", nargs="*", default=parts, choices=parts)
    parser.add_argument("--machines", nargs="*", default=["mesh4x4", "gap9"])
    parser.add_argument("--effort", default="quick")
    parser.add_argument("--limit", type=duration, default=120.0)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    rows: list[Row] = []
    limits = {"effort": given.effort, "limit": given.limit}
    with tempfile.TemporaryDirectory() as made:
        folder = given.folder or Path(made)
        folder.mkdir(exist_ok=True)
        for part in given.only:
            try:
                for name, path, why, values in models(part, folder):
                    if path is None:
                        rows.append({"part": part, "name": name, "status": "not made", "why": why})
                    for machine in given.machines if path else ():
                        row = outcome(path, machine, values, **limits)
                        rows.append({"part": part, "name": name, "machine": machine, **row})
                        print(json.dumps(rows[-1]), flush=True)
            except ImportError as error:
                print(f"{part}: skipped, {error}", flush=True)
    for (part, machine, status), count in sorted(
        Counter((r["part"], r.get("machine", ""), r["status"]) for r in rows).items()
    ):
        print(f"{part:10} {machine:10} {status:10} {count:5}")
    return int(any(row["status"] in BAD for row in rows))


if __name__ == "__main__":
    sys.exit(main())
