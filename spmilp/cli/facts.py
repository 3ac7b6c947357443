"""``spmilp bound``, ``calibrate``, ``machines`` and ``solvers``: what is known without a plan."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb

if TYPE_CHECKING:
    from spmilp.machine.machine import Engine, Machine, Memory
    from spmilp.machine.read import MachineFile


@verb("dim", "pins", source=argument("PROBLEM.json|MODEL.onnx"))
def bound(source: str, machine: str | None = None, *, as_json: bool = False, **given: Any) -> None:
    """Print every proven lower bound, and which is best for each quantity.

    For a model also those that hold for every tiling: on the makespan, DRAM traffic and the peak;
    the others hold for its tiles. With pins they are those of plans that keep to them.

    Parameters
    ----------
    source
        A problem file; or a model (onnx:NAME for a graph of the onnx package), whose tiles are then
        those that solve would choose.
    """
    from spmilp import pipeline
    from spmilp.bounds.any_tiles import Chains, peak_for_any_tiles, traffic_for_any_tiles
    from spmilp.bounds.best import Bound, all_bounds
    from spmilp.bounds.roofline import roofline
    from spmilp.problem.objective import Quantity
    from spmilp.report.summary import UNITS
    from spmilp.solvers.common.fit import narrowed

    tiled, origin = pipeline.tiled_problem(source, machine, **given)
    problem, pinned = tiled.problem, narrowed(tiled.problem).problem
    found = [(each, "these") for each in all_bounds(pinned)]
    if origin is not None:
        network, target = origin.network, pinned.machine
        cycles, makespan = roofline(network, target).cycles, Quantity.MAKESPAN
        chains, moved = Chains(network, target).cycles(), traffic_for_any_tiles(network)
        held = peak_for_any_tiles(network, target)
        found += [
            (Bound("roofline", makespan, cycles), "any"),
            (Bound("chains of groups", makespan, chains), "any"),
            (Bound("bytes that groups need", Quantity.DRAM_TRAFFIC, moved), "any"),
            (Bound("smallest tiles", Quantity.PEAK_SPM, held), "any"),
        ]
    best: dict[Quantity, Bound] = {}
    for each, _ in found:
        if each.value > best.setdefault(each.quantity, each).value:
            best[each.quantity] = each
    data = {
        "problem": problem.name,
        "machine": problem.machine.name,
        "tasks": len(problem.tasks),
        "quantity": str(problem.objective.first),
        "best": {str(quantity): each.name for quantity, each in best.items()},
        "bounds": [
            {
                "name": each.name,
                "quantity": str(each.quantity),
                "value": each.value,
                "tiles": tiles,
            }
            for each, tiles in found
        ],
    }
    rows = [
        (
            str(each.quantity),
            each.name,
            f"{each.value:,}",
            UNITS[each.quantity],
            tiles,
            "best" if best[each.quantity] is each else "",
        )
        for each, tiles in found
        if each.value > 0
    ]
    title = out.styled(f"{problem.name}: no plan has less", "bold")
    table = out.table(("quantity", "bound", "value", "", "tiles", ""), rows, numbers=(2,))
    out.print_answer(data, [title, table], as_json=as_json)


@verb(
    source=argument("MEASURED.csv|MODEL.onnx"),
    output=option("-o", metavar="TILES.csv", dir_okay=False, show_default="tiles.csv"),
    machine=option("-m", metavar="NAME|FILE.yaml", show_default=True),
)
def calibrate(
    source: str,
    output: Path = Path("tiles.csv"),
    machine: str = "mesh4x4",
    dim: list[str] | None = None,
    as_json: bool = False,
) -> None:
    """Say how well measured cycles of tiles can be learned, for solve --cost-model.

    Prints the error on rows that were held out, beside that of the
    machine's rates. Of MODEL.onnx it writes the tiles that a search would
    consider, with cycles by these rates, to be replaced by measured ones.

    Parameters
    ----------
    source
        Cycles of tiles, or a model whose tiles are to be measured.
    output
        Where to write the tiles of MODEL.onnx.
    machine
        A preset or a machine file.
    """
    from spmilp import calibration
    from spmilp.files import write_atomically
    from spmilp.machine.read import load_machine
    from spmilp.source import load

    if not source.endswith(".csv"):
        network, file = load(source, machine, dim=quantities.dimensions(dim))
        tiles = calibration.tiles_worth_measuring(network, file.machine)
        write_atomically(output, calibration.as_csv(tiles))
        out.print_answer({"files": [str(output)]}, [f"written: {output}"], as_json=as_json)
        return
    rows = calibration.read_measurements(source, load_machine(machine).machine)
    found = [
        (" ".join(family), len(some), *calibration.held_out_errors(some))
        for family, some in calibration.families_of(rows).items()
    ]
    names = ("family", "rows", "error", "error_by_rule")
    data = {"families": [dict(zip(names, each, strict=True)) for each in found]}
    cells = [
        (family, f"{rows:,}", f"{error:.1%}", f"{by_rule:.1%}")
        for family, rows, error, by_rule in found
    ]
    table = out.table(("family", "rows", "error", "analytic"), cells, numbers={1, 2, 3})
    out.print_answer(data, [out.styled("On held-out rows", "bold"), table], as_json=as_json)


@verb()
def solvers(as_json: bool = False) -> None:
    """List the solvers and policies: source, what each decides, and its limits."""
    from spmilp.registry import list_solvers

    headings = ("name", "source", "decides", "limits")
    rows = [(name, one.source, one.decides, one.limits) for name, one in list_solvers().items()]
    data = {"solvers": [dict(zip(headings, row, strict=True)) for row in rows]}
    out.print_answer(data, [out.table(headings, rows)], as_json=as_json)


@verb(name=argument("[NAME|FILE.yaml]"))
def machines(name: str | None = None, as_json: bool = False) -> None:
    """List the presets, or show one machine: its parts, and the source of each parameter.

    Parameters
    ----------
    name
        Show this one with its sources; without it, list the presets.
    """
    from spmilp.machine.machine import machine_to_json
    from spmilp.machine.read import list_presets, load_machine

    if name is not None:
        file = load_machine(name)
        sources = [asdict(each) for each in file.provenance]
        data = {"machine": machine_to_json(file.machine), "sha256": file.sha256}
        out.print_answer({**data, "parameters": sources}, _shown(file), as_json=as_json)
        return
    presets = [load_machine(preset).machine for preset in list_presets()]
    rows = [
        (
            machine.name,
            f"{len(machine.cores):,}",
            _sizes(machine),
            quantities.frequency(machine.frequency) if machine.frequency else "",
            f"{len(machine.unverified):,}",
            machine.description.split(". ")[0],
        )
        for machine in presets
    ]
    headings = ("name", "cores", "SPM", "clock", "unverified", "description")
    table = out.table(headings, rows, numbers={1, 2, 3, 4})
    out.print_answer({"machines": list(map(_outline, presets))}, [table], as_json=as_json)


def _shown(file: "MachineFile") -> Iterator[RenderableType]:
    """Yield the parts of a machine, and each parameter with the number of its source."""
    machine = file.machine
    what = f": {machine.description}" if machine.description else ""
    yield f"{machine.name}{what}\n"
    parts = [
        *_counted("core", (_core(machine, core.kind) for core in machine.cores)),
        *_counted("memory", map(_memory, machine.memories)),
        *_counted("engine", map(_engine, machine.engines)),
        *_counted("link", (f"{one.rate} B/cycle, latency {one.latency}" for one in machine.links)),
    ]
    yield out.table(("part", "number", "each"), parts, numbers={1})
    yield ""
    if not file.provenance:
        yield "The file says nothing about where its numbers come from."
        return
    sources = list(dict.fromkeys(one.source for one in file.provenance if one.source))
    numbers = {source: f"[{number}]" for number, source in enumerate(sources, start=1)}
    rows = [
        (
            each.field,
            each.value,
            "" if each.verified else "unverified",
            numbers.get(each.source, ""),
        )
        for each in file.provenance
    ]
    yield out.table(("parameter", "value", "", "source"), rows)
    for source, number in numbers.items():
        yield f"{number} {source}"


def _outline(machine: "Machine") -> dict[str, object]:
    return {
        "name": machine.name,
        "description": machine.description,
        "cores": len(machine.cores),
        "frequency": machine.frequency,
        "memories": [
            {"name": memory.name, "kind": memory.kind.value, "size": memory.size}
            for memory in machine.memories
        ],
        "links": len(machine.links),
        "engines": len(machine.engines),
        "unverified": list(machine.unverified),
    }


def _counted(part: str, described: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return a row for parts that are alike."""
    return [(part, f"{number:,}", text) for text, number in Counter(described).items()]


def _core(machine: "Machine", kind: int) -> str:
    its = machine.kinds[kind]
    macs = [
        f"{array.dtype} {prod(size for _, size in array.unroll):,} MAC/cycle"
        for array in its.arrays
    ]
    lanes = [f"{dtype} {lanes} lanes" for dtype, lanes in its.lanes]
    runs = [] if its.operators is None else [f"runs {', '.join(sorted(its.operators))}"]
    return f"{its.name}: " + ", ".join([*macs, *lanes, f"launch {its.launch} cycles", *runs])


def _memory(memory: "Memory") -> str:
    size = "no limit" if memory.size is None else quantities.size(memory.size)
    reserved = sum(taken.end - taken.start for taken in memory.reserved)
    kept = f", {quantities.size(reserved)} reserved" if reserved else ""
    return f"{memory.kind}: {size}{kept}, aligned to {memory.alignment} B"


def _engine(engine: "Engine") -> str:
    longest = "" if engine.longest is None else f", at most {engine.longest:,} B"
    strides = "" if engine.dimensions is None else f", {engine.dimensions}-D"
    return (
        f"{engine.channels} channels, {engine.rate} B/cycle, set-up {engine.setup} cycles"
        f"{longest}{strides}"
    )


def _sizes(machine: "Machine") -> str:
    """Return the sizes of the scratchpads, each once."""
    sizes = Counter(spm.size for spm in machine.spms)
    return ", ".join(f"{n} × {quantities.size(bytes_)}" for bytes_, n in sizes.items() if bytes_)
