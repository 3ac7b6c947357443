"""What runs a plan in C: sources that all plans have, the memories of one, and a makefile."""

from collections.abc import Iterator, Mapping, Sequence

from spmilp.export.actions import Kept
from spmilp.export.c_text import (
    PLAYER,
    TITLE,
    filled,
    image_is_in_c,
    image_name,
    kept_marks,
    sources_of_all_plans,
    stamp,
)
from spmilp.export.codes import Elements
from spmilp.export.errors import ExportError
from spmilp.export.names import comment, numbered
from spmilp.export.packed import packed_plan
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network, Operator


def program_files(
    subject: Subject, kept: Kept, plan: Sequence[str], inputs: int, *, is_code: bool
) -> dict[str, bytes]:
    """Return sources, makefile and linker script of a program that runs straight code, or bits.

    The files do not include the sources ``plan``, which say what is to run, nor the image of
    constants. ``inputs`` is the most inputs that a call has.
    """
    kind, program, makefile = "plan", subject.prefix, "player.mk"
    folders = ["", "host", kind]
    if is_code:
        kind, program, makefile = "code", f"{subject.prefix}_code", "code.mk"
        folders = ["", "host", kind, "vendors"]
    # The makefile says where those of folders "host" and "vendors" are needed.
    runtime = [name for name in sources_of_all_plans("", kind) if name.endswith(".c")]
    image = f"{subject.prefix}_image"
    in_c = image_is_in_c(kept.image)
    marks = {
        **kept_marks(subject, kept, kind),
        "PROGRAM": program,
        "UPPER_PROGRAM": program.upper(),
        "STAMP": stamp(subject, TITLE),
        "MAKEFILE": makefile,
        "STAMP_OF_MAKEFILE": "\n".join(f"# {e}" for e in subject.head(PLAYER, has_values=False)),
        "RUNTIME": " ".join(runtime),
        "SOURCES": " ".join([*plan, *([f"{image}.c"] if in_c else [])]),
        "IMAGE_BINARY": "" if in_c else f"{image}.bin",
        "INPUTS": max(LEAST_INPUTS, inputs),
        "LARGEST_PORT": max((row[1] for row in kept.ports), default=1),
    }
    of_kind = _marks_of_code if is_code else _marks_of_bits
    marks |= of_kind(subject, kept, marks)
    own = {f"{program}_{name}": name for name in ("program.h", "main.c", "mps2.c", "program.c")}
    own[makefile] = "player.mk"
    return {
        **sources_of_all_plans(*folders),
        **{name: filled(template, marks).encode() for name, template in own.items()},
    }


def _marks_of_bits(subject: Subject, kept: Kept, marks: Mapping[str, object]) -> dict[str, object]:
    """Return the marks of the program for packed bits: memories, workspaces and what runs."""
    cores = subject.lists.cores
    running = [one.core for one in cores if one.commands]
    # Cores that never run get the first workspace.
    places = [running.index(one.core) if one.commands else 0 for one in cores]
    names = [f"memory{number}" for number in range(len(kept.used))]
    bases = [f"(uint8_t *){name}" for name in (*names, image_name(subject, kept.image))]
    of_cores = "\n".join(f"    WORKSPACE({place})," for place in places)
    return {
        "VENDORS": "",
        "HOST": "",
        "MEMORIES": _memories("static ", names, marks["UPPER"]),
        "BASES": "\n".join(f"    {base}," for base in bases),
        "WORKSPACES": filled("workspaces_plan.c", {**marks, "WORKSPACES_OF_CORES": of_cores}),
        "POSITIONS": 3,
        "RUNS": f".workspaces = workspaces, .packed = &{marks['NAME']}_packed",
    }


def _marks_of_code(subject: Subject, kept: Kept, marks: Mapping[str, object]) -> dict[str, object]:
    """Return the marks of the program for straight code, whose header names the memories."""
    names = [f"{marks['NAME']}_memory{number}" for number in range(len(kept.used))]
    return {
        "VENDORS": filled("vendors.mk", marks),
        "HOST": '#include "spmilp_host.h"\n',
        "MEMORIES": _memories("", names, marks["UPPER"]),
        "BASES": "\n".join(f"    {base}," for base in memory_macros(subject)),
        "WORKSPACES": filled("workspaces_code.c", marks),
        "POSITIONS": 1,
        "RUNS": ".code = &code",
    }


def _memories(storage: str, names: Sequence[str], upper: object) -> str:
    return "\n".join(
        f"{storage}SPMILP_MEMORY uint64_t {name}[WORDS({upper}_MEMORY{number}_USED_BYTES)];"
        for number, name in enumerate(names)
    )


def memory_macros(subject: Subject) -> list[str]:
    """Return for each memory the macro of straight code that is its base address."""
    memories = subject.problem.machine.memories
    start = f"{subject.prefix}_M"
    return [numbered(start, memory.index, memory.name).upper() for memory in memories]


def player_files(subject: Subject) -> dict[str, bytes]:
    """Return sources, a makefile and a linker script; the plan is that of the C export.

    Raises
    ------
    ExportError
        If a kernel cannot compute an operator, or the plan cannot be packed.
    """
    require_kernels(subject, "player")
    plan, sources = packed_plan(subject), [f"{subject.prefix}_plan.c"]
    return program_files(subject, plan.kept, sources, plan.inputs, is_code=False)


TYPES = frozenset(
    type_.name.lower()
    for type_ in Elements
    if type_ not in (Elements.FLOAT64, Elements.UINT64, Elements.BFLOAT16)
)
"""Types of elements that the C kernels compute with, by NumPy's names."""

RANK, INPUTS, WINDOW_AXES = 8, 32, 3
"""``SPMILP_MAX_RANK``, ``SPMILP_MAX_INPUTS`` and ``SPMILP_WINDOW_AXES`` of the sources; a plan that
needs more inputs says so in its makefile."""

LEAST_INPUTS = 5
"""Entries that a C array of inputs has at least: some kernels look at so many without counting."""

_WINDOWED = frozenset({"AveragePool", "Conv", "ConvInteger", "ConvTranspose", "LpPool", "MaxPool"})
_PER_CHANNEL = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
_ROWS = frozenset({"LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax"})
_ON_FLOATS = (
    (_WINDOWED - {"ConvInteger"}) | _ROWS | {"Gemm", "GlobalAveragePool", "GlobalMaxPool", "MatMul"}
)


def require_kernels(subject: Subject, format_: str) -> None:
    """Make sure that there are kernels in C for all of the network.

    Raises
    ------
    ExportError
        If it cannot; the message names the operator and what is missing.
    """
    network = subject.network
    if network is None:
        raise ExportError(
            f"{format_}: only the model says what tasks compute; export with --model MODEL.onnx"
        )
    for operator in (each for group in network.groups for each in group.operators):
        for missing in _missing(network, operator):
            raise ExportError(
                f"{format_}: operator {comment(operator.name)} ({comment(operator.kind)}): "
                f"{missing}"
            )


def _missing(network: Network, operator: Operator) -> Iterator[str]:
    """Yield the reasons why its kernel cannot compute an operator."""
    kind, tensors = operator.kind, network.tensors
    for name in (*filter(None, operator.inputs), operator.output):
        tensor = tensors[name]
        if tensor.dtype.name not in TYPES:
            yield f"kernels do not compute with elements of type {tensor.dtype}"
        if len(tensor.shape) > RANK:
            yield f"a tensor of {len(tensor.shape)} axes > {RANK}, the most that kernels take"
    axes = len(tensors[operator.output].shape) - 2
    if kind in _WINDOWED and axes > WINDOW_AXES:
        yield f"windows along {axes} axes > {WINDOW_AXES}, the most that kernels take"
    if not operator.inputs or not operator.inputs[0]:
        return
    dtype = tensors[operator.inputs[0]].dtype
    reals_only = kind in _ON_FLOATS or kind.startswith("Reduce")
    reals_only |= kind == "Resize" and operator.attributes["mode"] != "nearest"
    # A float holds every integer of two bytes.
    is_exact = kind in ("MaxPool", "GlobalMaxPool", "Resize") and dtype.itemsize <= 2
    is_plain_integer = operator.quantisation is None and dtype.kind in "iub"
    if is_plain_integer and reals_only and not is_exact:
        yield f"its kernel computes with reals, not with elements of type {dtype}"
    scales = () if operator.quantisation is None else operator.quantisation.inputs
    for position, scale in enumerate(scales):
        takes_one = kind in _ROWS or (kind in _PER_CHANNEL and position == 0)
        if takes_one and scale is not None and scale.axis is not None:
            yield f"input {position} has more than one scale, its kernel takes one"
