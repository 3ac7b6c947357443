"""The files of the player: the same sources for every plan, and the program of one plan.

There is a kernel for every operator; what elements, axes and scales it cannot take is refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from spmilp.export.c_text import head, image_is_in_c
from spmilp.export.errors import ExportError
from spmilp.export.names import comment
from spmilp.export.packed.packed import packed_plan
from spmilp.export.subject import Profile, Stamp, Subject
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.codes import Elements
from spmilp.export.tables.table import Tables
from spmilp.frontend.graph import Network, Operator, Scale

NAME, VERSION = "spmilp-player", "1.0"

_HOST_ONLY = frozenset({"spmilp_threads.c", "spmilp_files.c", "spmilp_blob.c", "spmb_play.c"})
"""Sources that the program for bare metal does not need."""

_OF_ONE_PROFILE: Mapping[Profile, frozenset[str]] = {
    Profile.DEBUG: frozenset(
        {"spmilp_player.c", "spmilp_tasks.c", "spmilp_blob.c", "spmilp_blob.h", "spmb_play.c"}
    ),
    Profile.RELEASE: frozenset({"spmilp_packed.c", "spmilp_packed.h"}),
}
"""Sources that the other profile has no use for."""

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


def player(subject: Subject) -> dict[str, bytes]:
    """Return sources, a makefile and a linker script; the tables are those of the C export.

    Raises
    ------
    ExportError
        If a kernel cannot compute an operator, or the tables cannot be made.
    """
    require_kernels(subject)
    tables = all_tables(subject)
    prefix = subject.prefix
    runtime = _sources(subject.profile)
    made = {name: _headed(subject.stamp, name, text) for name, text in runtime.items()}
    made |= {
        f"{prefix}_program.h": _stamped(subject, _template(subject, tables, "program.h")),
        f"{prefix}_program.c": _stamped(subject, "\n".join(_program(subject, tables))),
        f"{prefix}_main.c": _stamped(subject, _template(subject, tables, "main.c")),
        f"{prefix}_mps2.c": _stamped(subject, _template(subject, tables, "mps2.c")),
        "player.mk": _makefile(subject, tables, runtime),
    }
    return made


def _sources(profile: Profile) -> dict[str, str]:
    """Return the files that are the same for every plan of a profile, in order of their names."""
    folder = files("spmilp.export.player").joinpath("c")
    others = frozenset[str]().union(*_OF_ONE_PROFILE.values()) - _OF_ONE_PROFILE[profile]
    found = {
        item.name: item.read_text("utf-8")
        for item in folder.iterdir()
        if item.is_file() and item.name not in others
    }
    return dict(sorted(found.items()))


def _template(subject: Subject, tables: Tables, name: str) -> str:
    """Return the text of a template with the plan's names in it."""
    text = files("spmilp.export.player").joinpath("templates", name).read_text("utf-8")
    sizes = [row[1] for row in tables.of("ports").rows]
    text = text.replace("@LARGEST_PORT@", str(max(sizes, default=1)))
    return text.replace("@PREFIX@", subject.prefix).replace("@UPPER@", subject.prefix.upper())


def _headed(stamp: Stamp, name: str, text: str) -> bytes:
    """Put format and tool above a file that is the same for every plan."""
    if not name.endswith((".c", ".h")):
        return text.encode()
    lines = ["/*", f" * format: {NAME} {VERSION}", f" * tool: {stamp.tool}", " */", "", text]
    return "\n".join(lines).encode()


def _stamped(subject: Subject, text: str) -> bytes:
    lines = head(subject.stamp, "A program that runs a plan; player.mk builds it.")
    return "\n".join([*lines, "", text]).encode()


def _image_in_c(tables: Tables) -> bool:
    return image_is_in_c(tables.image)


def _makefile(subject: Subject, tables: Tables, sources: Iterable[str]) -> bytes:
    runtime = [name for name in sources if name.endswith(".c") and name not in _HOST_ONLY]
    in_c = _image_in_c(tables)
    text = _template(subject, tables, "player.mk")
    text = text.replace("@RUNTIME@", " ".join(runtime))
    text = text.replace("@IMAGE_SOURCE@", "$(PREFIX)_image.c" if in_c else "")
    text = text.replace("@IMAGE_BINARY@", "" if in_c else "$(PREFIX)_image.bin")
    text = text.replace("@INPUTS@", str(_most_inputs(subject, tables)))
    if subject.profile is Profile.DEBUG:
        text += _template(subject, tables, "blob.mk")
    heading = "".join(f"# {line}\n" for line in subject.stamp.lines_of_tables(NAME, VERSION))
    return f"{heading}\n{text}".encode()


def _most_inputs(subject: Subject, tables: Tables) -> int:
    """Return how many inputs kernels must be able to take."""
    if subject.profile is Profile.RELEASE:
        return max(LEAST_INPUTS, packed_plan(subject).inputs)
    return max(INPUTS, *(row[2] for row in tables.of("steps").rows))


def _program(subject: Subject, tables: Tables) -> list[str]:
    """Return the definitions of memories, workspaces, events and the player."""
    prefix = subject.prefix
    is_packed = subject.profile is Profile.RELEASE
    upper = prefix.upper()
    memories = range(len(tables.of("memories").rows))
    lists = tables.of("lists").rows
    running = [core for core, row in enumerate(tables.of("cores").rows) if lists[row[2]][4]]
    places = {core: number for number, core in enumerate(running)}
    image = f"_binary_{prefix}_image_bin_start"
    has_image = _image_in_c(tables)
    where = f"{prefix}_plan_image" if has_image else image
    packed = f"&{prefix}_plan_packed" if is_packed else "(const struct spmilp_packed *)0"
    return [
        f'#include "{prefix}_plan.h"',
        f'#include "{prefix}_program.h"',
        "",
        *(
            []
            if has_image
            else [f"/* {prefix}_image.bin */", f"extern const uint8_t {image}[];", ""]
        ),
        "/* Whole words: every element is aligned where its offset is. SPMILP_MEMORY, if it is",
        "   defined, stands before each definition, for example a section. */",
        "#ifndef SPMILP_MEMORY",
        "#define SPMILP_MEMORY",
        "#endif",
        "#define WORDS(bytes) ((bytes) / 8U + 1U)",
        *(
            f"static SPMILP_MEMORY uint64_t memory{number}"
            f"[WORDS({upper}_PLAN_MEMORY{number}_USED_BYTES)];"
            for number in memories
        ),
        "",
        "static uint8_t *const memories[] = {",
        *(f"    (uint8_t *)memory{number}," for number in memories),
        *([f"    (uint8_t *){where}, /* constants, which nothing writes */"] if is_packed else []),
        "};",
        "",
        "/* As many as cores run at the same time. */",
        "#ifndef SPMILP_WORKSPACES",
        f"#define SPMILP_WORKSPACES {max(1, len(running))}U",
        "#endif",
        f"static uint64_t workspace[SPMILP_WORKSPACES][WORDS({upper}_PLAN_WORKSPACE_BYTES)];",
        "#define WORKSPACE(number) (uint8_t *)workspace[(number) % SPMILP_WORKSPACES]",
        "static uint8_t *const workspaces[] = {",
        *(f"    WORKSPACE({places.get(core, 0)})," for core in range(len(tables.of("cores").rows))),
        "};",
        "",
        f"static uint32_t events[{upper}_PLAN_EVENTS + 1U];",
        f"static uint32_t positions[{1 + is_packed}U * {upper}_PLAN_LISTS + 1U];",
        f"static {'const ' * has_image}struct spmilp_tables tables = {upper}_PLAN_TABLES;",
        "",
        f"const struct spmilp_player {prefix}_program = {{&tables, memories, workspaces, events,",
        f"    positions, {packed}}};",
        "",
        f"const char *{prefix}_program_prepare(void)",
        "{",
        *([] if has_image else [f"    tables.image = {image};"]),
        f"    return spmilp_prepare(&{prefix}_program);",
        "}",
        "",
    ]


def require_kernels(subject: Subject) -> None:
    """Make sure that the player can compute every operator of the network.

    Raises
    ------
    ExportError
        If it cannot; the message names the operator and what is missing.
    """
    network = subject.network
    if network is None:
        raise ExportError(
            "player: the tables do not say what tasks compute; export with --model MODEL.onnx"
        )
    for group in network.groups:
        for operator in group.operators:
            for missing in (*_missing(network, operator), *_missing_for_numbers(network, operator)):
                raise ExportError(
                    f"player: operator {comment(operator.name)} ({comment(operator.kind)}): "
                    f"{missing}"
                )


def _missing(network: Network, operator: Operator) -> Iterator[str]:
    """Yield the reasons why its kernel cannot compute an operator, element types' kinds aside."""
    for name in (*filter(None, operator.inputs), operator.output):
        tensor = network.tensors[name]
        if tensor.dtype.name not in TYPES:
            yield f"kernels do not compute with elements of type {tensor.dtype}"
        if len(tensor.shape) > RANK:
            yield f"a tensor of {len(tensor.shape)} axes > {RANK}, the most that kernels take"
    axes = len(network.tensors[operator.output].shape) - 2
    if operator.kind in _WINDOWED and axes > WINDOW_AXES:
        yield f"windows along {axes} axes > {WINDOW_AXES}, the most that kernels take"


def _missing_for_numbers(network: Network, operator: Operator) -> Iterator[str]:
    """Yield the kinds of integers and scales that a kernel cannot compute with."""
    if not operator.inputs or not operator.inputs[0]:
        return
    dtype = network.tensors[operator.inputs[0]].dtype
    is_integer = dtype.kind in "iub"
    reals_only = operator.kind in _ON_FLOATS or operator.kind.startswith("Reduce")
    # A float holds every integer of two bytes.
    is_exact = operator.kind in ("MaxPool", "GlobalMaxPool", "Resize") and dtype.itemsize <= 2
    reals_only |= operator.kind == "Resize" and operator.attributes["mode"] != "nearest"
    if operator.quantisation is None and is_integer and reals_only and not is_exact:
        yield f"its kernel computes with reals, not with elements of type {dtype}"
    scales = () if operator.quantisation is None else operator.quantisation.inputs
    for position, scale in enumerate(scales):
        if _has_axis(scale) and (
            operator.kind in _ROWS or (operator.kind in _PER_CHANNEL and position == 0)
        ):
            yield f"input {position} has more than one scale, its kernel takes one"


def _has_axis(scale: Scale | None) -> bool:
    return scale is not None and scale.axis is not None
