"""The files of a plan as straight code: functions, constants, and a program that runs them."""

from collections.abc import Iterator

from spmilp.commands.commands import ChannelCommands, CoreCommands
from spmilp.export.actions.actions import Actions
from spmilp.export.actions.kept import keep
from spmilp.export.c_tables import CTables, kept_in_c, kept_sizes
from spmilp.export.c_text import (
    SECTION_MACRO,
    guarded,
    head,
    image_files,
    image_in_program,
    linkage,
)
from spmilp.export.c_types import types_header
from spmilp.export.code.constants import Constants
from spmilp.export.code.lists import Lists
from spmilp.export.names import comment
from spmilp.export.player.kernels import LEAST_INPUTS, require_kernels
from spmilp.export.player.program import Kind, Program, memory_macros, workspace_count
from spmilp.export.subject import Subject

NAME, VERSION = "spmilp-code", "1.0"


def code_files(subject: Subject) -> dict[str, bytes]:
    """Return a function for each list, what they need, and a program that runs them.

    Raises
    ------
    ExportError
        If a kernel cannot compute an operator, or the tables cannot be made.
    """
    require_kernels(subject, "c-code")
    return _Code(subject).files()


class _Code:
    """Makes the files of one plan."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._start = f"{subject.prefix}_code"
        actions = Actions(subject)
        calls = {task.index: actions.task(task.index) for task in subject.problem.tasks}
        moves = {each.index: actions.transfer(each.index) for each in subject.plan.transfers}
        every = [call for task in calls.values() for call in task]
        self._constants = Constants(self._start, actions.operators, every)
        self._lists = Lists(subject, self._constants, calls, moves)
        self._sources = dict(self._functions())
        self._kept = keep(actions)

    def files(self) -> dict[str, bytes]:
        """Return all files."""
        subject, start = self._subject, self._start
        own = {f"{start}_{name}.c": text for name, text in self._sources.items()}
        arrays = kept_in_c(subject, self._kept, "code")
        own |= {
            f"{start}.h": self._header(arrays),
            f"{start}.c": self._constants_source(arrays),
            f"{start}_kernels.h": self._kernels(),
        }
        program = Program(
            subject=subject,
            kind=Kind.CODE,
            plan=tuple(name for name in own if name.endswith(".c")),
            header=f"{start}.h",
            sizes=start.upper(),
            inputs=max(LEAST_INPUTS, self._constants.inputs),
            makefile="code.mk",
        )
        return {
            "spmilp_types.h": types_header(subject.stamp.tool).encode(),
            **image_files(subject, self._kept.image),
            **{name: text.encode() for name, text in own.items()},
            **program.files(),
        }

    def _functions(self) -> Iterator[tuple[str, str]]:
        """Yield a file for each core and each engine that has commands."""
        lists = self._subject.lists
        for one in lists.cores:
            if one.commands:
                yield f"core{one.core}", self._source(self._lists.core(one))
        engines: dict[int, list[str]] = {}
        for number, channel in enumerate(lists.channels):
            if channel.commands:
                lines = engines.setdefault(channel.engine, [])
                lines += [*([""] if lines else []), *self._lists.channel(channel, number)]
        for engine, lines in engines.items():
            yield f"engine{engine}", self._source(iter(lines))

    def _source(self, lines: Iterator[str]) -> str:
        begin = self._head("A plan in straight code.")
        return "\n".join([*begin, "", f'#include "{self._start}.h"', "", *lines, ""])

    def _head(self, summary: str) -> list[str]:
        return head(self._subject.stamp, summary, title=(NAME, VERSION))

    def _header(self, arrays: CTables) -> str:
        subject, start = self._subject, self._start
        lines = self._head("A plan in straight code: functions, memories and constants.")
        lines += ["", '#include "spmilp_straight.h"', ""]
        lines += [*kept_sizes(subject, self._kept, "code"), *self._sizes(), ""]
        lines += workspace_count(len(self._lists.running))
        declared = [*self._places(), ""]
        declared += [f"SPMILP_LIST({self._lists.name(one)});" for one in self._with_commands()]
        declared += ["/* In the order of cores and channels; null for one without commands. */"]
        declared += [f"extern spmilp_function *const {start}_lists[];", *arrays.declarations()]
        declared += [*self._constants.declarations()]
        lines += [*linkage(declared), "", *arrays.initialiser()]
        return guarded(start, lines)

    def _with_commands(self) -> Iterator[CoreCommands | ChannelCommands]:
        return (one for one in self._subject.lists.lists if one.commands)

    def _sizes(self) -> Iterator[str]:
        line = f"#define {self._start.upper()}"
        yield f"{line}_CHANNELS {len(self._subject.lists.channels)}U"
        yield f"{line}_WORKSPACE_BYTES UINT64_C({self._kept.workspace})"
        yield f"{line}_SCHEME SPMILP_SCHEME_{self._subject.lists.scheme.name}"

    def _places(self) -> Iterator[str]:
        """Yield the base addresses of memories, of workspaces, and of the constants."""
        subject, start = self._subject, self._start
        upper, workspace = subject.prefix.upper(), f"{start}_workspace"
        words = f"{start.upper()}_WORKSPACE_BYTES / 8U + 1U"
        yield f"extern uint64_t {workspace}[SPMILP_WORKSPACES][{words}];"
        place = f"{workspace}[(number) % SPMILP_WORKSPACES]"
        yield f"#define {upper}_WORKSPACE(number) ((uint8_t *){place})"
        memories = subject.problem.machine.memories
        for memory, macro in zip(memories, memory_macros(subject), strict=True):
            name = f"{start}_memory{memory.index}"
            yield f"extern uint64_t {name}[];"
            yield f"#ifndef {macro} /* {comment(memory.name)}: or an address of your own */"
            yield f"#define {macro} ((uint8_t *){name})"
            yield "#endif"
        image = image_in_program(subject, self._kept.image)
        yield f"extern const uint8_t {image}[];"
        yield f"#define {upper}_IMAGE {image}"

    def _constants_source(self, arrays: CTables) -> str:
        """Return the definitions of what functions have in common."""
        lines = self._head("What the functions of a plan have in common.")
        lines += ["", f'#include "{self._start}.h"', f'#include "{self._start}_kernels.h"', ""]
        lines += [*SECTION_MACRO, "", *arrays.definitions(), *self._constants.definitions(), ""]
        names = (
            self._lists.name(one) if one.commands else "0" for one in self._subject.lists.lists
        )
        lines += [f"spmilp_function *const {self._start}_lists[] = {{"]
        return "\n".join([*lines, *(f"    {name}," for name in names), "};", ""])

    def _kernels(self) -> str:
        """Return the header that says which function computes what."""
        lines = self._head("Kernels of a plan: define a macro to put another one in place.")
        lines += ["", '#include "spmilp_kernels.h"', ""]
        for macro, function in sorted(self._constants.kernels().items()):
            lines += [f"#ifndef {macro}", f"#define {macro} {function}", "#endif"]
            lines += [f"spmilp_kernel {macro};"]
        return guarded(f"{self._start}_kernels", lines)
