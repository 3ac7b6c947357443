"""``placed.onnx``: the model with the plan as metadata, which Netron shows beside each node.

The graph stays as it is; nodes, values and constants get ``metadata_props`` (ONNX IR version 10 and
later; https://onnx.ai/onnx/repo-docs/IR.html). A node of the file that clean-up has replaced or
removed gets none. Constants in files of their own are left where they are.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from spmilp.export.errors import ExportError
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Group, Network
from spmilp.plan.plan import Placement

if TYPE_CHECKING:
    from onnx import ModelProto

NAME, VERSION = "onnx-metadata", "1.0"

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
    _add(model.metadata_props, subject.stamp.fields(NAME, VERSION))
    _annotate(model, _of_operators(subject, subject.network), _of_tensors(subject))
    return {"placed.onnx": model.SerializeToString(deterministic=True)}


def _annotate(
    model: "ModelProto", operators: Mapping[str, Properties], tensors: Mapping[str, Properties]
) -> None:
    for node in model.graph.node:
        found = (operators[name] for name in (*node.output, node.name) if name in operators)
        _add(node.metadata_props, next(found, {}))
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        _add(value.metadata_props, tensors.get(value.name, {}))
    for constant in model.graph.initializer:
        _add(constant.metadata_props, tensors.get(constant.name, {}))


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
        properties = _of_group(subject, group, placements[group.name])
        for operator in group.operators:
            found[operator.output] = found[operator.name] = properties
    return found


def _of_group(subject: Subject, group: Group, placements: list[Placement]) -> Properties:
    if not placements:
        return {"group": group.name, "tasks": "0"}
    cores = sorted({placement.core for placement in placements})
    return {
        "group": group.name,
        "tasks": str(len(placements)),
        "cores": ", ".join(subject.problem.machine.cores[core].name for core in cores),
        "start_cycle": str(min(placement.start for placement in placements)),
        "end_cycle": str(max(placement.end for placement in placements)),
    }


def _of_tensors(subject: Subject) -> dict[str, Properties]:
    """Return where each tensor lies: its address in DRAM, and its residencies elsewhere."""
    memories = subject.problem.machine.memories
    places: defaultdict[str, list[str]] = defaultdict(list)
    for residency in subject.plan.residencies:
        if residency.slice is None or subject.is_at_place(residency):
            continue
        tile = subject.problem.buffers[subject.problem.slices[residency.slice].buffer].tile
        if tile is not None:
            memory = memories[residency.memory].name
            where = f"{memory}+{residency.offset:#x} [{residency.start}, {residency.end})"
            places[tile.of].append(where)
    found: dict[str, dict[str, str]] = {
        name: {"residencies": str(len(listed)), "places": "; ".join(listed[:SHOWN])}
        for name, listed in places.items()
    }
    for tensor, address in zip(subject.problem.tensors, subject.plan.tensors, strict=True):
        properties = found.setdefault(tensor.name, {})
        properties["dram"] = f"{memories[tensor.memory].name}+{address:#x}"
    return dict(found)
