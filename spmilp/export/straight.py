"""A plan as straight code in C: a function for each core and each DMA channel."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from spmilp.commands.commands import ChannelCommands, CoreCommands, Move, Run, Signal, Wait
from spmilp.export.actions import (
    FIRST_SPACE,
    WORKSPACE_SPACE,
    Actions,
    Address,
    Attribute,
    Call,
    Copy,
    Described,
    Operand,
    OperatorCode,
    Scale,
)
from spmilp.export.c_text import (
    SECTION,
    SECTION_MACRO,
    KeptArrays,
    guarded,
    head,
    image_files,
    image_in_program,
    linkage,
    types_header,
)
from spmilp.export.codes import ATTRIBUTES, OPERATORS, AttributeType, Elements, Part
from spmilp.export.names import comment
from spmilp.export.player import (
    LEAST_INPUTS,
    RANK,
    Program,
    memory_macros,
    require_kernels,
    workspace_count,
)
from spmilp.export.subject import Subject
from spmilp.problem.strides import StridedCopy
from spmilp.units import Bytes, TaskIdx, TransferIdx

NAME, VERSION = "spmilp-code", "1.0"

_WIDTHS = ((1, "uint8_t", 2**8), (2, "uint16_t", 2**16), (4, "int32_t", 2**31))
"""Bytes, type and limit of the numbers of boxes."""

_Variant = tuple[int, int, int, int]
"""Operator, part, and types of the sums that it reads and writes (0 where there are none)."""


class _Pool:
    """Named constants by what stands between their braces."""

    def __init__(self, start: str) -> None:
        self._start, self.known = start, dict[tuple[str, ...], str]()

    def name(self, *parts: str, kind: str = "") -> str:
        """Return the name of a constant."""
        return self.known.setdefault(parts, f"{self._start}{kind}{len(self.known)}")


class Constants:
    """Gives names to what calls and transfers have in common, and defines it.

    Parameters
    ----------
    start
        Beginning of all names.
    calls
        All calls that there will be: the tiles of an operator have boxes of one width.
    """

    def __init__(self, start: str, actions: Actions, calls: Iterable[Call]) -> None:
        self._start = start
        self._operators = tuple(actions.operators)
        self._words = actions.words
        pools = ("operands", "attributes", "scale", "boxes", "shape")
        self._pools = {name: _Pool(f"{start}_{name}") for name in pools}
        self._pools["operator"] = _Pool(f"{start}_")
        self._largest: dict[_Variant, int] = {}
        for call in calls:
            variant = _variant(call)
            self._largest[variant] = max(self._largest.get(variant, 0), *_box_numbers(call), 0)
        self.inputs = max((len(each.inputs) for each in self._operators), default=0)

    def operator(self, call: Call) -> str:
        """Return the name of what a call has in common with those of other tiles."""
        operator, part, read, written = variant = _variant(call)
        made = self._operators[operator]
        kind = OPERATORS[made.kind].upper()
        operands = [self._operand(each) for each in made.inputs]
        if read:
            operands.append(self._operand(Described(made.output.rank, read), is_sums=True))
        operands.append(
            self._operand(Described(made.output.rank, written, scale=made.output.scale), True)
            if written
            else self._operand(made.output)
        )
        own = (
            f".kernel = {kernel_macro(made)}, .words = {self._start}_words",
            f".texts = {self._start}_texts",
            f".attributes = {self._attributes(made)}",
            f".operands = {self._pools['operands'].name(*operands)}",
            f".kind = SPMILP_OPERATOR_{kind}, .inputs = {len(made.inputs)}U",
            f".attribute_count = {len(made.attributes)}U, .quantised = {made.quantised}U",
            f".limits = {made.limits}U, .low_and_high = {made.low_and_high or 0}U",
            f".part = SPMILP_PART_{Part(part).name}, .has_previous = {int(read != 0)}U",
            f".width = {self._width(variant)[0]}U",
        )
        return self._pools["operator"].name(*own, kind=kind.lower())

    def boxes(self, call: Call) -> str:
        """Return the name of the boxes of a call's operands."""
        _, type_, _ = self._width(_variant(call))
        numbers = ", ".join(map(str, _box_numbers(call))) or "0"
        return self._pools["boxes"].name(type_, numbers)

    def shape(self, shape: StridedCopy) -> str:
        """Return the name of the shape of a copy."""
        numbers = (shape.run, len(shape.loops), *(each for loop in shape.loops for each in loop))
        return self._pools["shape"].name(", ".join(f"{number}U" for number in numbers))

    def kernels(self) -> dict[str, str]:
        """Return the function of each macro of a kernel that an operator has."""
        return {
            kernel_macro(each): kernel_functions()[OPERATORS[each.kind].upper()]
            for each in self._operators
        }

    def declarations(self) -> Iterator[str]:
        """Yield the declarations of what lists name."""
        for name in self._pools["operator"].known.values():
            yield f"extern const struct spmilp_operator {name};"
        for (type_, _), name in self._pools["boxes"].known.items():
            yield f"extern const {type_} {name}[];"
        for name in self._pools["shape"].known.values():
            yield f"extern const spmilp_shape {name}[];"

    def definitions(self) -> Iterator[str]:
        """Yield all definitions."""
        pools, static = self._pools, f"static {SECTION} const"
        for fields, name in pools["scale"].known.items():
            yield f"{static} struct spmilp_scale {name} = {{{', '.join(fields)}}};"
        for fields, name in pools["attributes"].known.items():
            yield from _array(f"{static} struct spmilp_attribute {name}[]", fields)
        for fields, name in pools["operands"].known.items():
            yield from _array(f"{static} struct spmilp_described {name}[]", fields)
        for fields, name in pools["operator"].known.items():
            yield from _array(f"{SECTION} const struct spmilp_operator {name}", fields)
        yield "/* First element and length along each axis of each operand. */"
        for (type_, numbers), name in pools["boxes"].known.items():
            yield f"{SECTION} const {type_} {name}[] = {{{numbers}}};"
        yield "/* Bytes of a run, loops, and turns and strides of each loop. */"
        for (numbers,), name in pools["shape"].known.items():
            yield f"{SECTION} const spmilp_shape {name}[] = {{{numbers}}};"

    def _width(self, variant: _Variant) -> tuple[int, str, int]:
        return next(each for each in _WIDTHS if self._largest[variant] < each[2])

    def _operand(self, operand: Described, is_sums: bool = False) -> str:
        scale = "0" if operand.scale is None else f"&{self._scale(operand.scale)}"
        if operand.rank is None:
            return f"{{{scale}, 0, 0U, 0U}}"
        shape = "0" if is_sums else f"{self._start}_words + {self._words.add(operand.shape)}"
        type_ = f"SPMILP_TYPE_{Elements(operand.type).name}"
        return f"{{{scale}, {shape}, {type_}, {operand.rank}U}}"

    def _scale(self, scale: Scale) -> str:
        return self._pools["scale"].name(
            f".type = SPMILP_TYPE_{Elements(scale.type).name}, .axis = {scale.axis}",
            f".scales = {scale.first}U, .zeros = {scale.zeros}U",
            f".zero_points = {scale.first_zero}U",
        )

    def _attributes(self, operator: OperatorCode) -> str:
        if not operator.attributes:
            return "0"
        return self._pools["attributes"].name(*map(_attribute, operator.attributes))


def kernel_macro(operator: OperatorCode) -> str:
    """Return the macro that says which function computes an operator."""
    return f"SPMILP_KERNEL_{OPERATORS[operator.kind].upper()}"


@cache
def kernel_functions() -> dict[str, str]:
    """Return the reference kernel of each operator type in capitals."""
    source = files("spmilp.export").joinpath("c/spmilp_kernels.c").read_text("utf-8")
    return dict(re.findall(r"\[SPMILP_OPERATOR_(\w+)\] = (\w+)", source))


def _attribute(attribute: Attribute) -> str:
    name, type_ = ATTRIBUTES[attribute.name].upper(), AttributeType(attribute.type).name
    return (
        f"{{SPMILP_ATTRIBUTE_{name}, SPMILP_VALUE_{type_}, {attribute.count}U, {attribute.first}U}}"
    )


def _variant(call: Call) -> _Variant:
    read = 0 if call.previous is None else call.previous.sums
    return call.operator, call.part, read, call.output.sums


def _box_numbers(call: Call) -> Iterator[int]:
    for operand in (*call.inputs, call.previous, call.output):
        if operand is not None:
            yield from operand.box


def _array(declaration: str, rows: Sequence[str]) -> Iterator[str]:
    yield f"{declaration} = {{"
    yield from (f"    {row}," for row in rows)
    yield "};"


def joined(copies: Iterable[Copy]) -> tuple[Copy, ...]:
    """Return the same bytes in fewer copies: those at equal distances are turns of one loop."""
    found = list(copies)
    count = 0
    while count != len(found):
        count = len(found)
        found = list(_with_another_loop(found))
    return tuple(found)


def _with_another_loop(copies: Sequence[Copy]) -> Iterator[Copy]:
    first = 0
    while first < len(copies):
        one, end = copies[first], first + 1
        while end < len(copies) and _is_next(copies[first:end], copies[end]):
            end += 1
        if end == first + 1:
            yield one
        else:
            steps = _steps(one, copies[first + 1])
            yield replace(
                one, shape=replace(one.shape, loops=((end - first, *steps), *one.shape.loops))
            )
        first = end


def _is_next(turns: Sequence[Copy], copy: Copy) -> bool:
    """Say whether a copy can be the next turn of a loop."""
    one = turns[0]
    steps = _steps(turns[-1], copy)
    return (
        copy.shape == one.shape
        and copy.source.space == one.source.space
        and copy.destination.space == one.destination.space
        and len(one.shape.loops) < RANK
        and min(steps) >= 0
        and (len(turns) == 1 or steps == _steps(one, turns[1]))
    )


def _steps(one: Copy, other: Copy) -> tuple[Bytes, Bytes]:
    return (
        other.source.offset - one.source.offset,
        other.destination.offset - one.destination.offset,
    )


_BETWEEN = ",\n                "


class Lists:
    """Writes the functions of a plan's command lists.

    Parameters
    ----------
    calls, copies
        Of all tasks and transfers.
    """

    def __init__(
        self,
        subject: Subject,
        constants: Constants,
        calls: Mapping[TaskIdx, tuple[Call, ...]],
        copies: Mapping[TransferIdx, tuple[Copy, ...]],
    ) -> None:
        self._subject, self._constants = subject, constants
        self._calls, self._copies = calls, copies
        self._bases = [*memory_macros(subject), f"{subject.prefix.upper()}_IMAGE"]
        self.running = [one.core for one in subject.lists.cores if one.commands]

    def name(self, one: CoreCommands | ChannelCommands) -> str:
        """Return the name of a list's function."""
        start = f"{self._subject.prefix}_code"
        if isinstance(one, CoreCommands):
            return f"{start}_core{one.core}"
        return f"{start}_engine{one.engine}_channel{one.channel}"

    def core(self, one: CoreCommands) -> Iterator[str]:
        """Yield the function of a core."""
        yield f"/* Core {comment(self._subject.problem.machine.cores[one.core].name)}. */"
        yield from self._opening(one)
        for command in one.commands:
            match command:
                case Wait(event, count):
                    yield f"    SPMILP_WAIT({event}U, {count}U);"
                case Signal(event):
                    yield f"    spmilp_signal({event}U);"
                case Run(task):
                    name = self._subject.problem.tasks[task].name
                    yield f"    /* task {task}: {comment(name)} */"
                    for call in self._calls[task]:
                        yield from self._call(call, self.running.index(one.core))
        yield from ("    SPMILP_END", "}")

    def channel(self, one: ChannelCommands, number: int) -> Iterator[str]:
        """Yield the function of channel ``number`` of all channels.

        A signal says that the transfers before it have completed; until then they queue.
        """
        engine = comment(self._subject.problem.machine.engines[one.engine].name)
        yield f"/* Channel {one.channel} of engine {engine}. */"
        yield from self._opening(one)
        is_moving = False
        for command in one.commands:
            match command:
                case Wait(event, count):
                    yield f"    SPMILP_WAIT({event}U, {count}U);"
                case Signal(event):
                    if is_moving:
                        yield f"    SPMILP_DMA_WAIT({number}U);"
                    is_moving = False
                    yield f"    spmilp_signal({event}U);"
                case Move(transfer):
                    source = self._subject.plan.transfers[transfer].source
                    moved = self._subject.name(self._subject.plan.residencies[source])
                    yield f"    /* transfer {transfer}: {comment(moved)} */"
                    for copy in self._copies[transfer]:
                        yield f"    spmilp_dma_start({number}U, {self._copy(copy)});"
                    is_moving = True
        if is_moving:
            yield f"    SPMILP_DMA_WAIT({number}U);"
        yield from ("    SPMILP_END", "}")

    def _opening(self, one: CoreCommands | ChannelCommands) -> Iterator[str]:
        yield from (f"SPMILP_LIST({self.name(one)})", "{", "    SPMILP_BEGIN")

    def _call(self, call: Call, workspace: int) -> Iterator[str]:
        """Yield the gathering of what does not lie packed, a call, and the scattering after it."""
        given = [each for each in (*call.inputs, call.previous) if each is not None]
        yield from self._copies_of(given, workspace)
        operands = [*call.inputs, *([call.previous] if call.previous else []), call.output]
        addresses = ", ".join(self._operand(each, workspace) for each in operands)
        constants = f"&{self._constants.operator(call)}, {self._constants.boxes(call)}"
        yield f"    SPMILP_RUN({constants},"
        yield f"               {addresses});"
        yield from self._copies_of([call.output], workspace)

    def _copies_of(self, operands: Iterable[Operand], workspace: int) -> Iterator[str]:
        copies = [copy for each in operands for copy in joined(each.copies or ())]
        rows = [f"{{{self._copy(copy, workspace)}}}" for copy in copies]
        if rows:
            yield f"    SPMILP_COPY({_BETWEEN.join(rows)});"

    def _operand(self, operand: Operand | None, workspace: int) -> str:
        return "0" if operand is None else self._address(operand.place, workspace)

    def _copy(self, copy: Copy, workspace: int = 0) -> str:
        to, source = (self._address(e, workspace) for e in (copy.destination, copy.source))
        return f"{to}, {source}, {self._constants.shape(copy.shape)}"

    def _address(self, address: Address, workspace: int) -> str:
        base = f"{self._subject.prefix.upper()}_WORKSPACE({workspace})"
        if address.space != WORKSPACE_SPACE:
            base = self._bases[address.space - FIRST_SPACE]
        return f"{base} + {address.offset}U"


def straight_files(subject: Subject) -> dict[str, bytes]:
    """Return a function for each list, what they need, and a program that runs them.

    Raises
    ------
    ExportError
        If a kernel cannot compute an operator, or the tables cannot be made.
    """
    require_kernels(subject, "c-code")
    return _StraightCode(subject).files()


class _StraightCode:
    """Makes the files of one plan."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._start = f"{subject.prefix}_code"
        actions = Actions(subject)
        calls = {task.index: actions.task(task.index) for task in subject.problem.tasks}
        moves = {each.index: actions.transfer(each.index) for each in subject.plan.transfers}
        every = [call for task in calls.values() for call in task]
        self._constants = Constants(self._start, actions, every)
        self._lists = Lists(subject, self._constants, calls, moves)
        self._sources = dict(self._functions())
        self._kept = actions.kept()
        self._arrays = KeptArrays(subject, self._kept, "code")

    def files(self) -> dict[str, bytes]:
        """Return all files."""
        subject, start = self._subject, self._start
        own = {f"{start}_{name}.c": text for name, text in self._sources.items()}
        own |= {
            f"{start}.h": self._header(),
            f"{start}.c": self._constants_source(),
            f"{start}_kernels.h": self._kernels(),
        }
        program = Program(
            subject=subject,
            kept=self._kept,
            is_code=True,
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

    def _header(self) -> str:
        start = self._start
        lines = self._head("A plan in straight code: functions, memories and constants.")
        lines += ["", '#include "spmilp_straight.h"', ""]
        lines += [*self._arrays.sizes(), *self._sizes(), ""]
        lines += workspace_count(len(self._lists.running))
        declared = [*self._places(), ""]
        declared += [f"SPMILP_LIST({self._lists.name(one)});" for one in self._with_commands()]
        declared += ["/* In the order of cores and channels; null for one without commands. */"]
        declared += [
            f"extern spmilp_function *const {start}_lists[];",
            *self._arrays.declarations(),
        ]
        declared += [*self._constants.declarations()]
        lines += [*linkage(declared), "", *self._arrays.initialiser()]
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

    def _constants_source(self) -> str:
        """Return the definitions of what functions have in common."""
        lines = self._head("What the functions of a plan have in common.")
        lines += ["", f'#include "{self._start}.h"', f'#include "{self._start}_kernels.h"', ""]
        lines += [
            *SECTION_MACRO,
            "",
            *self._arrays.definitions(),
            *self._constants.definitions(),
            "",
        ]
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
