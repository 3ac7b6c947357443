"""What runs a plan in C: sources that all plans have, the memories of one, and a makefile."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

from spmilp.export.actions import Kept
from spmilp.export.c_text import head, image_in_program, image_is_in_c
from spmilp.export.codes import Elements
from spmilp.export.errors import ExportError
from spmilp.export.names import comment, numbered
from spmilp.export.packed import packed_plan
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network, Operator, Scale

NAME, VERSION = "spmilp-player", "2.0"


_HOST_ONLY = frozenset({"spmilp_threads.c", "spmilp_files.c"})
"""Sources that the program for bare metal does not need."""

_VENDORS = ("spmilp_cmsis_products.c", "spmilp_cmsis_others.c", "spmilp_pulp_nn.c")
"""Sources that the makefile takes only with the library whose functions they call."""

_TEMPLATES = ("program.h", "main.c", "mps2.c")

_OF_BITS = frozenset({"spmilp_bits.h", "spmilp_kernels.c", "spmilp_packed.c", "spmilp_packed.h"})
_OF_CODE = frozenset(
    {
        *("spmilp_straight.c", "spmilp_straight.h", "spmilp_platform.h"),
        *("spmilp_host.c", "spmilp_host.h", *_VENDORS),
        *("spmilp_cmsis_nn.h", "spmilp_vendor.h"),
    }
)
"""Sources that one kind of program alone has a use for."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that runs a plan.

    Parameters
    ----------
    kept
        What stays besides what is to run.
    is_code
        Whether it runs straight code; else packed bits.
    plan
        Its sources with what is to run.
    header
        Theirs, which begins the names of its macros of sizes with ``sizes``.
    inputs
        How many kernels must be able to take.
    makefile
        Its name.
    """

    subject: Subject
    kept: Kept
    is_code: bool
    plan: tuple[str, ...]
    header: str
    sizes: str
    inputs: int
    makefile: str

    @property
    def prefix(self) -> str:
        """Beginning of the names of its own files and objects."""
        return self.subject.prefix + ("_code" if self.is_code else "")

    def files(self) -> dict[str, bytes]:
        """Return sources, makefile and linker script, without the plan and its image."""
        own = {f"{self.prefix}_{name}": self._template(name) for name in _TEMPLATES}
        own[f"{self.prefix}_program.c"] = self._program()
        made = {name: self._headed(name, text) for name, text in self._runtime.items()}
        made |= {name: self._stamped(text) for name, text in own.items()}
        return made | {self.makefile: self._makefile()}

    @property
    def _image_is_in_c(self) -> bool:
        return image_is_in_c(self.kept.image)

    @cached_property
    def _runtime(self) -> dict[str, str]:
        """The files that are the same for every plan, in order of their names."""
        folder = files("spmilp.export").joinpath("c")
        others = _OF_BITS if self.is_code else _OF_CODE
        found = {
            item.name: item.read_text("utf-8")
            for item in folder.iterdir()
            if item.is_file() and item.name not in others
        }
        return dict(sorted(found.items()))

    def _template(self, name: str) -> str:
        """Return the text of a template with the plan's names in it."""
        text = files("spmilp.export").joinpath("templates", name).read_text("utf-8")
        sizes = [row[1] for row in self.kept.ports]
        text = text.replace("@LARGEST_PORT@", str(max(sizes, default=1)))
        text = text.replace("@MAKEFILE@", self.makefile)
        return text.replace("@PREFIX@", self.prefix).replace("@UPPER@", self.prefix.upper())

    def _headed(self, name: str, text: str) -> bytes:
        """Put format and tool above a file that is the same for every plan."""
        if not name.endswith((".c", ".h")):
            return text.encode()
        tool = self.subject.stamp.tool
        lines = ["/*", f" * format: {NAME} {VERSION}", f" * tool: {tool}", " */", "", text]
        return "\n".join(lines).encode()

    def _stamped(self, text: str) -> bytes:
        says = f"A program that runs a plan; {self.makefile} builds it."
        return "\n".join([*head(self.subject.stamp, says), "", text]).encode()

    def _makefile(self) -> bytes:
        others = _HOST_ONLY.union(_VENDORS)
        runtime = [each for each in self._runtime if each.endswith(".c") and each not in others]
        image = self.subject.prefix + "_image"
        in_c = self._image_is_in_c
        text = self._template("player.mk")
        text = text.replace("@RUNTIME@", " ".join(runtime))
        text = text.replace("@PLAN@", " ".join((*self.plan, *([f"{image}.c"] if in_c else []))))
        text = text.replace("@IMAGE_BINARY@", "" if in_c else f"{image}.bin")
        text = text.replace("@INPUTS@", str(self.inputs))
        vendors = self._template("vendors.mk") if self.is_code else ""
        text = text.replace("@VENDORS@", vendors)
        stamp = [f"# {line}" for line in self.subject.stamp.lines_of_tables(NAME, VERSION)]
        return "\n".join([*stamp, "", text]).encode()

    def _program(self) -> str:
        """Return the definitions of memories, workspaces, events and the player."""
        image = image_in_program(self.subject, self.kept.image)
        numbers = range(len(self.kept.used))
        if self.is_code:
            names, storage = [f"{self.prefix}_memory{each}" for each in numbers], ""
            bases = memory_macros(self.subject)
            workspaces, runs = _CODE_WORKSPACES, ".code = &code"
        else:
            names, storage = [f"memory{each}" for each in numbers], "static "
            bases = [f"(uint8_t *){name}" for name in (*names, image)]
            workspaces = "\n".join(self._workspaces())
            runs = f".workspaces = workspaces, .packed = &{self.prefix}_plan_packed"
        sizes = [f"{self.sizes}_MEMORY{each}_USED_BYTES" for each in numbers]
        memories = "".join(
            f"{storage}SPMILP_MEMORY uint64_t {name}[WORDS({size})];\n"
            for name, size in zip(names, sizes, strict=True)
        )
        marks = {
            "EXTERN": "" if self._image_is_in_c else f"extern const uint8_t {image}[];\n\n",
            "HOST": '#include "spmilp_host.h"\n' if self.is_code else "",
            "HEADER": self.header,
            "MEMORIES": memories,
            "BASES": "".join(f"    {base},\n" for base in bases).rstrip("\n"),
            "WORKSPACES": workspaces,
            "POSITIONS": "1" if self.is_code else "3",
            "CONST": "const " if self._image_is_in_c else "",
            "RUNS": runs,
            "SET_IMAGE": "" if self._image_is_in_c else f"    tables.image = {image};\n",
            "SIZES": self.sizes,
        }
        text = self._template("program.c")
        for mark, value in marks.items():
            text = text.replace(f"@{mark}@", value.replace("@SIZES@", self.sizes))
        return text.replace("@PREFIX@", self.prefix)

    def _workspaces(self) -> list[str]:
        """Return the workspaces of cores; those that never run get the first one."""
        cores = self.subject.lists.cores
        running = [one.core for one in cores if one.commands]
        places = {core: number for number, core in enumerate(running)}
        return [
            *workspace_count(len(running)),
            f"static uint64_t workspace[SPMILP_WORKSPACES][WORDS({self.sizes}_WORKSPACE_BYTES)];",
            "#define WORKSPACE(number) (uint8_t *)workspace[(number) % SPMILP_WORKSPACES]",
            "static uint8_t *const workspaces[] = {",
            *(f"    WORKSPACE({places.get(core, 0)})," for core in range(len(cores))),
            "};",
            "",
        ]


_CODE_WORKSPACES = """\
uint64_t @PREFIX@_workspace[SPMILP_WORKSPACES][WORDS(@SIZES@_WORKSPACE_BYTES)];
static struct spmilp_queue queues[@SIZES@_CHANNELS + 1U];
static const struct spmilp_code code = {@PREFIX@_lists, queues};
"""


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
    plan, prefix = packed_plan(subject), subject.prefix
    return Program(
        subject=subject,
        kept=plan.kept,
        is_code=False,
        plan=(f"{prefix}_plan.c",),
        header=f"{prefix}_plan.h",
        sizes=f"{prefix.upper()}_PLAN",
        inputs=max(LEAST_INPUTS, plan.inputs),
        makefile="player.mk",
    ).files()


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
    for group in network.groups:
        for operator in group.operators:
            for missing in (*_missing(network, operator), *_missing_for_numbers(network, operator)):
                raise ExportError(
                    f"{format_}: operator {comment(operator.name)} ({comment(operator.kind)}): "
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
