"""Why there is no plan, and what helps, as text and data."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

from spmilp import quantities
from spmilp.explanation.cause import Misfit
from spmilp.explanation.remedies import Remedy
from spmilp.machine.machine import Machine
from spmilp.report.explanation import Explanation, paragraph, section


def why_it_does_not_fit(
    name: str, machine: Machine, misfit: Misfit, remedies: Sequence[Remedy], trials: int
) -> Explanation:
    """Explain why a problem or a model has no plan on a machine."""
    proven = "no plan exists" if misfit.is_proven else "no plan was found"
    cores = quantities.count(len(machine.cores), "core")
    lines = [*paragraph(f"{misfit.what}: {misfit.said}."), *_figures(machine, misfit)]
    text = "\n\n".join(
        [
            f"{name} on {machine.name} ({cores}): {proven}",
            section("What is in the way", lines),
            section("What helps", _remedies(remedies, trials)),
        ]
    )
    return Explanation(text=text, data=_data(name, machine, misfit, remedies))


def _figures(machine: Machine, misfit: Misfit) -> Iterator[str]:
    """Yield required, available and reserved bytes, and the largest buffers."""
    if misfit.memory is not None and misfit.needed is not None:
        memory = machine.memories[misfit.memory]
        size, usable = memory.size or 0, misfit.usable or 0
        reserved = size - (memory.usable or 0)
        least = ", at least" if misfit.is_proven else ""
        yield f"{misfit.needed:>13,} B required at one time{least}"
        yield f"{usable:>13,} B usable in {memory.name}"
        yield f"{reserved:>13,} B reserved there, of {quantities.shown_bytes(size)}"
        if misfit.needed > usable:
            yield f"{misfit.needed - usable:>13,} B too many"
    if misfit.parts:
        yield "largest:"
        for name, size in misfit.parts:
            yield f"{size:>13,} B {name}"


def _remedies(remedies: Sequence[Remedy], trials: int) -> Iterator[str]:
    if not remedies:
        yield from paragraph(
            f"No single change was found to make it fit ({quantities.count(trials, 'trial')}; "
            "--time-limit gives more time)."
        )
        return
    yield "Each was tried: the plan found with it is checked."
    for remedy in remedies:
        least = "; fewer do not suffice" if remedy.least else ""
        said = f"{remedy.change}: {remedy.makespan:,} cycles{least}"
        yield from paragraph(said, "- ")


def _data(
    name: str, machine: Machine, misfit: Misfit, remedies: Sequence[Remedy]
) -> dict[str, object]:
    memory = None if misfit.memory is None else machine.memories[misfit.memory]
    return {
        "problem": name,
        "machine": machine.name,
        "status": "infeasible" if misfit.is_proven else "unknown",
        "cause": str(misfit.cause),
        "what": misfit.what,
        "reason": misfit.said,
        "memory": None if memory is None else memory.name,
        "required": misfit.needed,
        "usable": misfit.usable,
        "size": None if memory is None else memory.size,
        "largest": [{"name": part, "bytes": size} for part, size in misfit.parts],
        "remedies": [asdict(remedy) for remedy in remedies],
    }
