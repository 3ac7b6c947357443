"""DRAM traffic by tensor, beside what no plan can avoid."""

from collections import Counter
from dataclasses import dataclass

from spmilp.analysis.space import tensor_name
from spmilp.analysis.subject import Subject
from spmilp.plan.measures import compulsory_loads_and_stores
from spmilp.problem.problem import BufferKind
from spmilp.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorTraffic:
    """Bytes of one tensor that leave DRAM (``loaded``) and enter it (``stored``).

    Parameters
    ----------
    compulsory
        The part that no plan can avoid: bytes read of an input or weight once, an output once.
    """

    tensor: str
    kind: BufferKind
    loaded: Bytes
    stored: Bytes
    compulsory: Bytes

    @property
    def bytes(self) -> Bytes:
        """All of it."""
        return self.loaded + self.stored


def traffic_of(subject: Subject) -> tuple[TensorTraffic, ...]:
    """Return the traffic of each tensor that has some, the most beyond the compulsory first."""
    problem = subject.problem
    loaded, stored, compulsory = Counter[str](), Counter[str](), Counter[str]()
    names = [tensor_name(subject, buffer.index) for buffer in problem.buffers]
    kinds: dict[str, BufferKind] = {}
    for buffer, (loads, stores) in zip(
        problem.buffers, compulsory_loads_and_stores(problem), strict=True
    ):
        compulsory[names[buffer.index]] += loads + stores
        kinds.setdefault(names[buffer.index], buffer.kind)
    for move in subject.plan.transfers:
        part = problem.slices[move.slice]
        loaded[names[part.buffer]] += part.bytes * subject.is_dram(move.source)
        stored[names[part.buffer]] += part.bytes * sum(map(subject.is_dram, move.destinations))
    rows = [
        TensorTraffic(
            tensor=name,
            kind=kind,
            loaded=loaded[name],
            stored=stored[name],
            compulsory=compulsory[name],
        )
        for name, kind in kinds.items()
        if loaded[name] or stored[name] or compulsory[name]
    ]
    return tuple(sorted(rows, key=lambda row: (row.compulsory - row.bytes, -row.bytes, row.tensor)))
