"""``spmilp machines`` and ``spmilp solvers``: what ships with the package, and its sources."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from math import prod
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from spmilp import quantities
from spmilp.cli import arguments
from spmilp.cli import output as out

if TYPE_CHECKING:
    from spmilp.machine.changed import Provenance
    from spmilp.machine.machine import Engine, Machine, Memory
    from spmilp.machine.read import MachineFile


def machines(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|FILE.yaml]",
            help="Show this one with its sources; without it, list the presets.",
            show_default=False,
        ),
    ] = None,
    as_json: arguments.AsJson = False,
) -> None:
    """List the presets, or show one machine: its parts, and the source of each parameter."""
    from spmilp.machine.read import list_presets, load_machine

    if name is not None:
        _show(load_machine(name), as_json=as_json)
        return
    _list([load_machine(preset).machine for preset in list_presets()], as_json=as_json)


def solvers(as_json: arguments.AsJson = False) -> None:
    """List the solvers and policies: source, what each decides, and its limits."""
    from spmilp.registry import list_solvers

    found = list_solvers()
    if as_json:
        out.print_json({"solvers": [asdict(one) for one in found]})
        return
    rows = [(one.name, one.source, one.decides, one.limits) for one in found]
    out.console().print(out.table(("name", "source", "decides", "limits"), rows))


def _list(presets: "list[Machine]", *, as_json: bool) -> None:
    if as_json:
        out.print_json({"machines": [_outline(machine) for machine in presets]})
        return
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
    out.console().print(out.table(headings, rows, numbers={1, 2, 3, 4}))


def _show(file: "MachineFile", *, as_json: bool) -> None:
    from spmilp.machine.machine import machine_to_json

    machine = file.machine
    if as_json:
        whole, sources = machine_to_json(machine), [asdict(each) for each in file.provenance]
        out.print_json({"machine": whole, "sha256": file.sha256, "parameters": sources})
        return
    to = out.console()
    what = f": {machine.description}" if machine.description else ""
    to.print(f"{machine.name}{what}", markup=False, soft_wrap=True)
    to.print()
    to.print(_parts(machine))
    to.print()
    for note in _unused_rates(machine):
        to.print(note, soft_wrap=True)
        to.print()
    if not file.provenance:
        to.print("The file says nothing about where its numbers come from.")
        return
    to.print(_parameters(file.provenance))
    for number, source in enumerate(_sources(file.provenance), start=1):
        to.print(f"[{number}] {source}", markup=False, soft_wrap=True)


def _unused_rates(machine: "Machine") -> Iterator[str]:
    """Yield what part of DRAM's rate no transfers can use, as each of them holds its whole rate."""
    from spmilp.lowering.rates import dram_rate

    drams = {memory.name for memory in machine.drams}
    for outgoing, what in ((True, "leave"), (False, "enter")):
        ends = ((link.source if outgoing else link.target, link.rate) for link in machine.links)
        stated = float(sum(rate for end, rate in ends if end in drams))
        used = dram_rate(machine, outgoing=outgoing)
        if used < stated:
            yield (
                f"Of {stated:g} B/cycle on the links that {what} DRAM, transfers use {used:g} at "
                "most: each holds the whole rate of its engine or of its slowest link, and beside "
                "whole ones the rest stays free. Engines of another rate may use more."
            )


def _parameters(provenance: "Sequence[Provenance]") -> Table:
    """Return a row per parameter; its source is a number in the list of sources."""
    numbers = {source: f"[{n}]" for n, source in enumerate(_sources(provenance), start=1)}
    rows = [
        (
            parameter.field,
            parameter.value,
            "" if parameter.verified else "unverified",
            numbers.get(parameter.source, ""),
        )
        for parameter in provenance
    ]
    return out.table(("parameter", "value", "", "source"), rows)


def _sources(provenance: "Sequence[Provenance]") -> list[str]:
    """Return the sources in the order in which they first occur, each once."""
    return [source for source in dict.fromkeys(p.source for p in provenance) if source]


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


def _parts(machine: "Machine") -> Table:
    """Return what the machine consists of, equal parts in one row."""
    rows = [
        *_rows("core", (_core(machine, core.kind) for core in machine.cores)),
        *_rows("memory", (_memory(memory) for memory in machine.memories)),
        *_rows("engine", (_engine(engine) for engine in machine.engines)),
        *_rows("link", (f"{link.rate} B/cycle, latency {link.latency}" for link in machine.links)),
    ]
    return out.table(("part", "number", "each"), rows, numbers={1})


def _rows(part: str, described: Iterable[str]) -> list[tuple[str, str, str]]:
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
