"""``spmilp bound``, ``calibrate``, ``machines`` and ``solvers``: what is known without a plan."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from spmilp import quantities
from spmilp.cli import output as out
from spmilp.cli.arguments import argument, option, verb

if TYPE_CHECKING:
    from spmilp.machine.machine import Machine
    from spmilp.machine.read import MachineFile


@verb("dim", "input", "pins", source=argument("PROBLEM.json|MODEL.onnx"))
def bound(source: str, machine: str | None = None, *, as_json: bool = False, **given: Any) -> None:
    """Print every proven lower bound, and which is best for each quantity.

    For a model also those that hold for every tiling: on the makespan, period, DRAM traffic and
    the peak; the others hold for its tiles. With pins they are those of plans that keep to them.

    Parameters
    ----------
    source
        A problem file; or a model (onnx:NAME for a graph of the onnx package), whose tiles are then
        those that solve would choose.
    """
    from spmilp import pipeline
    from spmilp.bounds.any_tiles import peak_for_any_tiles, traffic_for_any_tiles
    from spmilp.bounds.best import Bound, all_bounds, bounds_in_turn
    from spmilp.bounds.roofline import roofline
    from spmilp.problem.objective import Quantity
    from spmilp.report.summary import UNITS
    from spmilp.solvers.common.fit import narrowed

    tiled, origin = pipeline.tiled_problem(source, machine, **given)
    problem, pinned = tiled.problem, narrowed(tiled.problem).problem
    of_these = (*all_bounds(pinned), *bounds_in_turn(pinned, Quantity.PERIOD))
    found = [(each, "these") for each in of_these]
    if origin is not None:
        network, target = origin.network, pinned.machine
        roof = roofline(network, target)
        of_any_tiles = (
            Bound("roofline", Quantity.MAKESPAN, roof.cycles),
            Bound("roofline", Quantity.PERIOD, roof.period),
            Bound("bytes that groups need", Quantity.DRAM_TRAFFIC, traffic_for_any_tiles(network)),
            Bound("smallest tiles", Quantity.PEAK_SPM, peak_for_any_tiles(network, target)),
        )
        found += [(each, "any") for each in of_any_tiles]
    best: dict[Quantity, Bound] = {}
    for each, _ in found:
        if each.value > best.setdefault(each.quantity, each).value:
            best[each.quantity] = each
    rows = [
        {
            "quantity": str(each.quantity),
            "name": each.name,
            "value": each.value,
            "unit": UNITS[each.quantity],
            "tiles": tiles,
            "best": "best" if best[each.quantity] is each else "",
        }
        for each, tiles in found
    ]
    data = {
        "problem": problem.name,
        "machine": problem.machine.name,
        "tasks": len(problem.tasks),
        "quantity": str(problem.objective.first),
        "best": {str(quantity): each.name for quantity, each in best.items()},
        "bounds": rows,
    }
    title = out.styled(f"{problem.name}: no plan has less", "bold")
    formats = {"quantity": "", "name": "", "value": ",d", "unit": "", "tiles": "", "best": ""}
    out.print_answer(data, [title, out.table_of(rows, formats)], as_json=as_json)


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
    input: list[str] | None = None,
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
        values = quantities.input_values(input)
        network, file = load(source, machine, dim=quantities.dimensions(dim), input=values)
        tiles = calibration.tiles_worth_measuring(network, file.machine)
        write_atomically(output, calibration.as_csv(tiles))
        out.print_answer({"files": [str(output)]}, [f"written: {output}"], as_json=as_json)
        return
    rows = calibration.read_measurements(source, load_machine(machine).machine)
    formats = {"family": "", "rows": ",d", "error": ".1%", "error_by_rule": ".1%"}
    families = []
    for family, some in calibration.families_of(rows).items():
        error, by_rule = calibration.held_out_errors(some)
        figures = (" ".join(family), len(some), error, by_rule)
        families.append(dict(zip(formats, figures, strict=True)))
    title, table = out.styled("On held-out rows", "bold"), out.table_of(families, formats)
    out.print_answer({"families": families}, [title, table], as_json=as_json)


@verb()
def solvers(as_json: bool = False) -> None:
    """List the solvers and policies: source, what each decides, and its limits."""
    from spmilp.registry import list_solvers

    formats = {"name": "", "source": "", "decides": "", "limits": ""}
    rows = [{**one._asdict(), "name": name} for name, one in list_solvers().items()]
    data = {"solvers": [{name: row[name] for name in formats} for row in rows]}
    out.print_answer(data, [out.table_of(rows, formats)], as_json=as_json)


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
        {
            "name": machine.name,
            "cores": len(machine.cores),
            "spm": _sizes(machine),
            "clock": quantities.frequency(machine.frequency) if machine.frequency else None,
            "unverified": len(machine.unverified),
            "description": machine.description.split(". ")[0],
        }
        for machine in presets
    ]
    formats = {"name": "", "cores": ",d", "spm": "", "clock": "", "unverified": ",d"}
    table = out.table_of(rows, {**formats, "description": ""})
    out.print_answer({"machines": rows}, [table], as_json=as_json)


def _sizes(machine: "Machine") -> str:
    """Return the sizes of the scratchpads, each once."""
    sizes = Counter(spm.size for spm in machine.spms)
    return ", ".join(f"{n} × {quantities.size(bytes_)}" for bytes_, n in sizes.items() if bytes_)


def _shown(file: "MachineFile") -> Iterator[RenderableType]:
    """Yield the parts of a machine, and each parameter with the number of its source."""
    machine = file.machine
    what = f": {machine.description}" if machine.description else ""
    yield f"{machine.name}{what}\n"
    parts = Counter(_parts(machine))
    counted = [(part, f"{number:,}", text) for (part, text), number in parts.items()]
    yield out.table(("part", "number", "each"), counted, numbers={1})
    yield ""
    if not file.provenance:
        yield "The file says nothing about where its numbers come from."
        return
    sources = list(dict.fromkeys(one.source for one in file.provenance if one.source))
    numbers = {source: f"[{number}]" for number, source in enumerate(sources, start=1)}
    rows = [
        (one.field, one.value, "unverified" * (not one.verified), numbers.get(one.source, ""))
        for one in file.provenance
    ]
    yield out.table(("parameter", "value", "", "source"), rows)
    for source, number in numbers.items():
        yield f"{number} {source}"


def _parts(machine: "Machine") -> Iterator[tuple[str, str]]:
    """Yield what each part is, and what tells it from others of its kind."""
    for core in machine.cores:
        yield "core", machine.kinds[core.kind].name
    for memory in machine.memories:
        size = "no limit" if memory.size is None else quantities.size(memory.size)
        yield "memory", f"{memory.kind}: {size}, aligned to {memory.alignment} B"
    for engine in machine.engines:
        rate = f"{engine.rate} B/cycle, set-up {engine.setup} cycles"
        yield "engine", f"{engine.channels} channels, {rate}{', pipelined' * engine.pipelined}"
    for link in machine.links:
        yield "link", f"{link.rate} B/cycle, latency {link.latency}"
