"""What runs a plan in C: sources that all plans have, the memories of one, and a makefile."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from importlib.resources import files

from spmilp.export.c_text import head, image_in_program, image_is_in_c
from spmilp.export.names import numbered
from spmilp.export.subject import Subject
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.table import Tables

NAME, VERSION = "spmilp-player", "1.1"


class Kind(StrEnum):
    """What a program runs a plan from."""

    TABLES = "tables"
    BITS = "bits"
    CODE = "code"


_HOST_ONLY = frozenset({"spmilp_threads.c", "spmilp_files.c", "spmilp_blob.c", "spmb_play.c"})
"""Sources that the program for bare metal does not need."""

_VENDORS = ("spmilp_cmsis_products.c", "spmilp_cmsis_others.c", "spmilp_pulp_nn.c")
"""Sources that the makefile takes only with the library whose functions they call."""

_TEMPLATES = ("program.h", "main.c", "mps2.c")

_FETCHED = frozenset({"spmilp_commands.c", "spmilp_kernels.c"})
_OF_KIND: Mapping[Kind, frozenset[str]] = {
    Kind.TABLES: _FETCHED
    | {"spmilp_player.c", "spmilp_tasks.c", "spmilp_blob.c", "spmilp_blob.h", "spmb_play.c"},
    Kind.BITS: _FETCHED | {"spmilp_bits.h", "spmilp_packed.c", "spmilp_packed.h"},
    Kind.CODE: frozenset(
        {
            *("spmilp_straight.c", "spmilp_straight.h", "spmilp_platform.h"),
            *("spmilp_host.c", "spmilp_host.h", *_VENDORS),
            *("spmilp_cmsis_nn.h", "spmilp_vendor.h"),
        }
    ),
}
"""Sources that not all kinds of programs have a use for."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program that runs a plan.

    Parameters
    ----------
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
    kind: Kind
    plan: tuple[str, ...]
    header: str
    sizes: str
    inputs: int
    makefile: str

    @property
    def prefix(self) -> str:
        """Beginning of the names of its own files and objects."""
        return self.subject.prefix + ("_code" if self.kind is Kind.CODE else "")

    def files(self) -> dict[str, bytes]:
        """Return sources, makefile and linker script, without the plan and its image."""
        own = {f"{self.prefix}_{name}": self._template(name) for name in _TEMPLATES}
        own[f"{self.prefix}_program.c"] = self._program()
        made = {name: self._headed(name, text) for name, text in self._runtime.items()}
        made |= {name: self._stamped(text) for name, text in own.items()}
        return made | {self.makefile: self._makefile()}

    @cached_property
    def _tables(self) -> Tables:
        return all_tables(self.subject)

    @property
    def _image_is_in_c(self) -> bool:
        return image_is_in_c(self._tables.image)

    @cached_property
    def _runtime(self) -> dict[str, str]:
        """The files that are the same for every plan, in order of their names."""
        folder = files("spmilp.export.player").joinpath("c")
        others = frozenset[str]().union(*_OF_KIND.values()) - _OF_KIND[self.kind]
        found = {
            item.name: item.read_text("utf-8")
            for item in folder.iterdir()
            if item.is_file() and item.name not in others
        }
        return dict(sorted(found.items()))

    def _template(self, name: str) -> str:
        """Return the text of a template with the plan's names in it."""
        text = files("spmilp.export.player").joinpath("templates", name).read_text("utf-8")
        sizes = [row[1] for row in self._tables.of("ports").rows]
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
        vendors = self._template("vendors.mk") if self.kind is Kind.CODE else ""
        text = text.replace("@VENDORS@", vendors)
        if self.kind is Kind.TABLES:
            text += self._template("blob.mk")
        stamp = [f"# {line}" for line in self.subject.stamp.lines_of_tables(NAME, VERSION)]
        return "\n".join([*stamp, "", text]).encode()

    def _program(self) -> str:
        """Return the definitions of memories, workspaces, events and the player."""
        image = image_in_program(self.subject, self._tables.image)
        is_packed, numbers = self.kind is Kind.BITS, range(len(self._tables.of("memories").rows))
        if self.kind is Kind.CODE:
            names, storage = [f"{self.prefix}_memory{each}" for each in numbers], ""
            bases = memory_macros(self.subject)
            workspaces, runs = _CODE_WORKSPACES, ".code = &code"
        else:
            names, storage = [f"memory{each}" for each in numbers], "static "
            bases = [f"(uint8_t *){name}" for name in names]
            bases += [f"(uint8_t *){image}"] if is_packed else []
            workspaces = "\n".join(self._workspaces())
            runs = ".workspaces = workspaces"
            runs += f", .packed = &{self.prefix}_plan_packed" if is_packed else ""
        sizes = [f"{self.sizes}_MEMORY{each}_USED_BYTES" for each in numbers]
        memories = "".join(
            f"{storage}SPMILP_MEMORY uint64_t {name}[WORDS({size})];\n"
            for name, size in zip(names, sizes, strict=True)
        )
        marks = {
            "EXTERN": "" if self._image_is_in_c else f"extern const uint8_t {image}[];\n\n",
            "HOST": '#include "spmilp_host.h"\n' if self.kind is Kind.CODE else "",
            "HEADER": self.header,
            "MEMORIES": memories,
            "BASES": "".join(f"    {base},\n" for base in bases).rstrip("\n"),
            "WORKSPACES": workspaces,
            "POSITIONS": "3" if is_packed else "1",
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
        lists = self._tables.of("lists").rows
        cores = self._tables.of("cores").rows
        running = [core for core, row in enumerate(cores) if lists[row[2]][4]]
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
