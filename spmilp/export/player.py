"""What runs a plan in C: sources that all plans have, the memories of one, and a makefile."""

from collections.abc import Iterator, Sequence
from importlib.resources import files

from spmilp.export.actions import Kept
from spmilp.export.c_text import (
    PLAYER,
    head,
    image_in_program,
    image_is_in_c,
    source_of_all_plans,
)
from spmilp.export.codes import Elements
from spmilp.export.errors import ExportError
from spmilp.export.names import comment, numbered
from spmilp.export.packed import packed_plan
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network, Operator

_HOST_ONLY = frozenset({"spmilp_threads.c", "spmilp_files.c"})
"""Sources that the program for bare metal does not need."""

_VENDORS = ("spmilp_cmsis_products.c", "spmilp_cmsis_others.c", "spmilp_pulp_nn.c")
"""Sources that the makefile takes only with the library whose functions they call."""

_OF_BITS = frozenset({"spmilp_bits.h", "spmilp_kernels.c", "spmilp_packed.c", "spmilp_packed.h"})
_OF_CODE = frozenset(
    {
        *("spmilp_straight.c", "spmilp_straight.h", "spmilp_platform.h"),
        *("spmilp_host.c", "spmilp_host.h", *_VENDORS),
        *("spmilp_cmsis_nn.h", "spmilp_vendor.h"),
    }
)
"""Sources that one kind of program alone has a use for."""


def program_files(
    subject: Subject, kept: Kept, plan: Sequence[str], inputs: int, *, is_code: bool
) -> dict[str, bytes]:
    """Return sources, makefile and linker script of a program that runs a plan.

    Parameters
    ----------
    kept
        What stays besides what is to run.
    plan
        The sources with what is to run, which are not among those returned, as is the image.
    inputs
        How many kernels must be able to take.
    is_code
        Whether the program runs straight code; else packed bits.
    """
    folder, others = files("spmilp.export"), _OF_BITS if is_code else _OF_CODE
    runtime = sorted(item.name for item in folder.joinpath("c").iterdir() if item.is_file())
    runtime = [name for name in runtime if name not in others]
    makefile = "code.mk" if is_code else "player.mk"
    prefix = f"{subject.prefix}_code" if is_code else subject.prefix
    marks = {
        **(_marks_of_code(subject, kept) if is_code else _marks_of_bits(subject, kept)),
        **_marks_of_image(subject, kept, plan),
        "RUNTIME": " ".join(
            name
            for name in runtime
            if name.endswith(".c") and name not in _HOST_ONLY.union(_VENDORS)
        ),
        "INPUTS": str(max(LEAST_INPUTS, inputs)),
        "LARGEST_PORT": str(max((row[1] for row in kept.ports), default=1)),
        "MAKEFILE": makefile,
        "PREFIX": prefix,
        "UPPER": prefix.upper(),
    }

    def filled(name: str, begin: Sequence[str]) -> bytes:
        text = _template(name)
        for mark, value in marks.items():
            text = text.replace(f"@{mark}@", value)
        return "\n".join([*begin, "", text]).encode()

    stamp = head(subject, f"A program that runs a plan; {makefile} builds it.")
    names = ("program.h", "main.c", "mps2.c", "program.c")
    return {
        **{name: source_of_all_plans(name) for name in runtime},
        **{f"{prefix}_{name}": filled(name, stamp) for name in names},
        makefile: filled("player.mk", [f"# {e}" for e in subject.head(PLAYER, has_values=False)]),
    }


def _template(name: str) -> str:
    return files("spmilp.export").joinpath("templates", name).read_text("utf-8")


def _marks_of_image(subject: Subject, kept: Kept, plan: Sequence[str]) -> dict[str, str]:
    """Return what depends on whether the constants' bytes are an array of C, or a file to link."""
    image, file = image_in_program(subject, kept.image), f"{subject.prefix}_image"
    if image_is_in_c(kept.image):
        sources = " ".join([*plan, f"{file}.c"])
        return {
            "PLAN": sources,
            "IMAGE_BINARY": "",
            "EXTERN": "",
            "CONST": "const ",
            "SET_IMAGE": "",
        }
    return {
        "PLAN": " ".join(plan),
        "IMAGE_BINARY": f"{file}.bin",
        "EXTERN": f"extern const uint8_t {image}[];\n\n",
        "CONST": "",
        "SET_IMAGE": f"    tables.image = {image};\n",
    }


def _marks_of_bits(subject: Subject, kept: Kept) -> dict[str, str]:
    """Return what is packed bits' own: memories, workspaces of cores, and what runs."""
    names, cores = [f"memory{number}" for number in range(len(kept.used))], subject.lists.cores
    running = [one.core for one in cores if one.commands]
    workspaces = [
        *workspace_count(len(running)),
        "static uint64_t workspace[SPMILP_WORKSPACES][WORDS(@SIZES@_WORKSPACE_BYTES)];",
        "#define WORKSPACE(number) (uint8_t *)workspace[(number) % SPMILP_WORKSPACES]",
        "static uint8_t *const workspaces[] = {",
        # Cores that never run get the first one.
        *(f"    WORKSPACE({running.index(one.core) if one.commands else 0})," for one in cores),
        "};",
        "",
    ]
    sizes = f"{subject.prefix}_plan"
    bases = [f"(uint8_t *){name}" for name in (*names, image_in_program(subject, kept.image))]
    return {
        "VENDORS": "",
        "HOST": "",
        "MEMORIES": _memories("static ", names),
        "BASES": ",\n".join(f"    {base}" for base in bases) + ",",
        "WORKSPACES": "\n".join(workspaces),
        "POSITIONS": "3",
        "RUNS": f".workspaces = workspaces, .packed = &{subject.prefix}_plan_packed",
        "HEADER": f"{sizes}.h",
        "SIZES": sizes.upper(),
    }


def _marks_of_code(subject: Subject, kept: Kept) -> dict[str, str]:
    """Return the same of straight code, whose header names memories and workspaces."""
    sizes = f"{subject.prefix}_code"
    names = [f"{sizes}_memory{number}" for number in range(len(kept.used))]
    workspaces = (
        f"uint64_t {sizes}_workspace[SPMILP_WORKSPACES][WORDS(@SIZES@_WORKSPACE_BYTES)];",
        "static struct spmilp_queue queues[@SIZES@_CHANNELS + 1U];",
        f"static const struct spmilp_code code = {{{sizes}_lists, queues}};",
        "",
    )
    return {
        "VENDORS": _template("vendors.mk"),
        "HOST": '#include "spmilp_host.h"\n',
        "MEMORIES": _memories("", names),
        "BASES": ",\n".join(f"    {base}" for base in memory_macros(subject)) + ",",
        "WORKSPACES": "\n".join(workspaces),
        "POSITIONS": "1",
        "RUNS": ".code = &code",
        "HEADER": f"{sizes}.h",
        "SIZES": sizes.upper(),
    }


def _memories(storage: str, names: Sequence[str]) -> str:
    return "".join(
        f"{storage}SPMILP_MEMORY uint64_t {name}[WORDS(@SIZES@_MEMORY{number}_USED_BYTES)];\n"
        for number, name in enumerate(names)
    )


def workspace_count(cores: int) -> list[str]:
    """Return the macro that says how many workspaces there are."""
    return [
        "/* As many as cores run at the same time. */",
        *("#ifndef SPMILP_WORKSPACES", f"#define SPMILP_WORKSPACES {max(1, cores)}U", "#endif"),
    ]


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
"""Types of elements, by NumPy's names."""

RANK, INPUTS, WINDOW_AXES = 8, 32, 3
"""``SPMILP_MAX_RANK``, ``SPMILP_MAX_INPUTS`` and ``SPMILP_WINDOW_AXES`` of the sources; a plan that
needs more inputs says so in its makefile."""

LEAST_INPUTS = 5
"""What some kernel looks at without counting."""

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
