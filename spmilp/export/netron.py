"""``placed.onnx``: the model with the plan as metadata, which Netron shows beside each node.

The graph stays as it is; nodes, values and constants get ``metadata_props`` (ONNX IR version 10 and
later; https://onnx.ai/onnx/repo-docs/IR.html). A node of the file that clean-up has replaced or
removed gets none. Constants in files of their own are left where they are.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from spmilp.export.errors import ExportError
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network
from spmilp.plan.plan import Placement

TITLE = ("onnx-metadata", "1.0")

FIRST_WITH_METADATA = 10
"""The IR version that brought ``metadata_props`` to nodes and values."""

SHOWN = 16
"""Places of a tensor that are listed; of more, only the number."""

Properties = Mapping[str, str]


def netron(subject: Subject) -> dict[str, bytes]:
    """Return the file.

    Raises
    ------
    ExportError
        If the model is not known.
    """
    import onnx

    if subject.model is None or subject.network is None:
        raise ExportError("onnx: the model is not known; name it with --model")
    model = onnx.load_model_from_string(subject.model)
    model.ir_version = max(model.ir_version, FIRST_WITH_METADATA)
    operators, tensors = _of_operators(subject, subject.network), _of_tensors(subject)
    _add(model.metadata_props, subject.fields(TITLE))
    graph = model.graph
    for node in graph.node:
        found = (operators[name] for name in (*node.output, node.name) if name in operators)
        _add(node.metadata_props, next(found, {}))
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        _add(value.metadata_props, tensors.get(value.name, {}))
    return {"placed.onnx": model.SerializeToString(deterministic=True)}


def _add(entries: Any, found: Properties) -> None:
    """Add properties to a repeated field of protobuf, whose type has no public name."""
    for key, value in found.items():
        entries.add(key=f"spmilp.{key}", value=value)


def _of_operators(subject: Subject, network: Network) -> dict[str, Properties]:
    """Return the properties of each operator, by its name and by its output's."""
    placements: defaultdict[str, list[Placement]] = defaultdict(list)
    for placement in subject.plan.placements:
        tile = subject.problem.tasks[placement.task].tile
        if tile is not None:
            placements[tile.of].append(placement)
    found: dict[str, Properties] = {}
    for group in network.groups:
        placed = placements[group.name]
        properties = {"group": group.name, "tasks": str(len(placed))}
        if placed:
            cores = sorted({placement.core for placement in placed})
            properties |= {
                "cores": ", ".join(subject.problem.machine.cores[core].name for core in cores),
                "start_cycle": str(min(placement.start for placement in placed)),
                "end_cycle": str(max(placement.end for placement in placed)),
            }
        for operator in group.operators:
            found[operator.output] = found[operator.name] = properties
    return found


def _of_tensors(subject: Subject) -> dict[str, dict[str, str]]:
    """Return where each tensor lies: its address in DRAM, and its residencies elsewhere."""
    memories = subject.problem.machine.memories
    places: defaultdict[str, list[str]] = defaultdict(list)
    for residency in subject.plan.residencies:
        buffer = subject.buffer(residency)
        if buffer is None or buffer.tile is None or subject.is_at_place(residency):
            continue
        places[buffer.tile.of].append(
            f"{memories[residency.memory].name}+{residency.offset:#x} "
            f"[{residency.start}, {residency.end})"
        )
    found = {
        name: {"residencies": str(len(listed)), "places": "; ".join(listed[:SHOWN])}
        for name, listed in places.items()
    }
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        properties = found.setdefault(tensor.name, {})
        properties["dram"] = f"{memories[tensor.memory].name}+{address:#x}"
    return found
