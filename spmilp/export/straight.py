"""A plan as straight code in C: a function for each core and each DMA channel."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from spmilp.commands.commands import ChannelCommands, CoreCommands, Move, Run, Signal, Wait
from spmilp.export.actions import (
    Actions,
    Call,
    Copy,
    Described,
    Operand,
    OperatorCode,
    Pool,
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
)
from spmilp.export.codes import ATTRIBUTES, OPERATORS, AttributeType, Elements, Part, types_header
from spmilp.export.names import comment
from spmilp.export.places import FIRST_SPACE, WORKSPACE_SPACE, Address
from spmilp.export.player import (
    RANK,
    memory_macros,
    program_files,
    require_kernels,
    workspace_count,
)
from spmilp.export.subject import Subject
from spmilp.problem.strides import StridedCopy
from spmilp.units import Bytes

TITLE = ("spmilp-code", "1.0")

_WIDTHS = ((1, "uint8_t", 2**8), (2, "uint16_t", 2**16), (4, "int32_t", 2**31))
"""Bytes, type and limit of the numbers of boxes."""

_Variant = tuple[int, int, int, int]
"""Operator, part, and types of the sums that it reads and writes (0 where there are none)."""

_BETWEEN = ",\n                "


class _Named:
    """Constants by what stands between their braces; their names are numbered."""

    def __init__(self, start: str) -> None:
        self._start, self.known = start, dict[tuple[str, ...], str]()

    def name(self, *parts: str, kind: str = "") -> str:
        """Return the name of a constant."""
        return self.known.setdefault(parts, f"{self._start}{kind}{len(self.known)}")


class _Constants:
    """Gives names to what calls and transfers have in common, and defines it.

    Parameters
    ----------
    start
        Beginning of all names.
    operators
        Those that calls have the numbers of.
    words
        The pool of words; shapes are added to it.
    calls
        All calls that there will be: the tiles of an operator have boxes of one width.
    """

    def __init__(
        self, start: str, operators: Iterable[OperatorCode], words: Pool, calls: Iterable[Call]
    ) -> None:
        self._start, self._words = start, words
        self._all_operators = tuple(operators)
        self._operators = _Named(f"{start}_")
        self._operands = _Named(f"{start}_operands")
        self._attributes = _Named(f"{start}_attributes")
        self._scales = _Named(f"{start}_scale")
        self._boxes = _Named(f"{start}_boxes")
        self._shapes = _Named(f"{start}_shape")
        self._largest: dict[_Variant, int] = {}
        for call in calls:
            variant = _variant(call)
            self._largest[variant] = max(self._largest.get(variant, 0), *_box_numbers(call), 0)
        self.inputs = max((len(each.inputs) for each in self._all_operators), default=0)

    def operator(self, call: Call) -> str:
        """Return the name of what a call has in common with those of other tiles."""
        operator, part, read, written = variant = _variant(call)
        made = self._all_operators[operator]
        kind, output = OPERATORS[made.kind], made.output
        rows = [self._operand(each) for each in made.inputs]
        if read:
            rows.append(self._operand(Described(output.rank, read), are_sums=True))
        if written:
            output = Described(output.rank, written, scale=output.scale)
        rows.append(self._operand(output, are_sums=written != 0))
        attributes = [
            f"{{SPMILP_ATTRIBUTE_{ATTRIBUTES[each.name].upper()}, "
            f"SPMILP_VALUE_{AttributeType(each.type).name}, {each.count}U, {each.first}U}}"
            for each in made.attributes
        ]
        named = self._attributes.name(*attributes) if attributes else "0"
        own = (
            f".kernel = {_kernel_macro(made)}, .words = {self._start}_words",
            f".texts = {self._start}_texts",
            f".attributes = {named}",
            f".operands = {self._operands.name(*rows)}",
            f".kind = SPMILP_OPERATOR_{kind.upper()}, .inputs = {len(made.inputs)}U",
            f".attribute_count = {len(made.attributes)}U, .quantised = {made.quantised}U",
            f".limits = {made.limits}U, .low_and_high = {made.low_and_high or 0}U",
            f".part = SPMILP_PART_{Part(part).name}, .has_previous = {int(read != 0)}U",
            f".width = {self._width(variant)[0]}U",
        )
        return self._operators.name(*own, kind=kind.lower())

    def boxes(self, call: Call) -> str:
        """Return the name of the boxes of a call's operands."""
        _, type_, _ = self._width(_variant(call))
        return self._boxes.name(type_, ", ".join(map(str, _box_numbers(call))) or "0")

    def shape(self, shape: StridedCopy) -> str:
        """Return the name of the shape of a copy."""
        numbers = (shape.run, len(shape.loops), *(each for loop in shape.loops for each in loop))
        return self._shapes.name(", ".join(f"{number}U" for number in numbers))

    def kernels(self) -> Iterator[str]:
        """Yield macros that say which function computes an operator."""
        for macro, kind in sorted({_kernel_macro(e): e.kind for e in self._all_operators}.items()):
            function = kernel_functions()[OPERATORS[kind].upper()]
            yield from (f"#ifndef {macro}", f"#define {macro} {function}", "#endif")
            yield f"spmilp_kernel {macro};"

    def declarations(self) -> Iterator[str]:
        """Yield the declarations of what lists name."""
        for name in self._operators.known.values():
            yield f"extern const struct spmilp_operator {name};"
        for (type_, _), name in self._boxes.known.items():
            yield f"extern const {type_} {name}[];"
        for name in self._shapes.known.values():
            yield f"extern const spmilp_shape {name}[];"

    def definitions(self) -> Iterator[str]:
        """Yield all definitions."""
        static = f"static {SECTION} const struct"
        for fields, name in self._scales.known.items():
            yield f"{static} spmilp_scale {name} = {{{', '.join(fields)}}};"
        for start, named, end in (
            (f"{static} spmilp_attribute", self._attributes, "[]"),
            (f"{static} spmilp_described", self._operands, "[]"),
            (f"{SECTION} const struct spmilp_operator", self._operators, ""),
        ):
            for fields, name in named.known.items():
                yield f"{start} {name}{end} = {{"
                yield from (f"    {field}," for field in fields)
                yield "};"
        yield "/* First element and length along each axis of each operand. */"
        for (type_, numbers), name in self._boxes.known.items():
            yield f"{SECTION} const {type_} {name}[] = {{{numbers}}};"
        yield "/* Bytes of a run, loops, and turns and strides of each loop. */"
        for (numbers,), name in self._shapes.known.items():
            yield f"{SECTION} const spmilp_shape {name}[] = {{{numbers}}};"

    def _width(self, variant: _Variant) -> tuple[int, str, int]:
        return next(each for each in _WIDTHS if self._largest[variant] < each[2])

    def _operand(self, operand: Described, *, are_sums: bool = False) -> str:
        scale = "0" if operand.scale is None else f"&{self._scale(operand.scale)}"
        if operand.rank is None:
            return f"{{{scale}, 0, 0U, 0U}}"
        shape = "0" if are_sums else f"{self._start}_words + {self._words.add(operand.shape)}"
        type_ = f"SPMILP_TYPE_{Elements(operand.type).name}"
        return f"{{{scale}, {shape}, {type_}, {operand.rank}U}}"

    def _scale(self, scale: Scale) -> str:
        return self._scales.name(
            f".type = SPMILP_TYPE_{Elements(scale.type).name}, .axis = {scale.axis}",
            f".scales = {scale.first}U, .zeros = {scale.zeros}U",
            f".zero_points = {scale.first_zero}U",
        )


def _kernel_macro(operator: OperatorCode) -> str:
    """Return the macro that says which function computes an operator."""
    return f"SPMILP_KERNEL_{OPERATORS[operator.kind].upper()}"


@cache
def kernel_functions() -> dict[str, str]:
    """Return the reference kernel of each operator type in capitals."""
    source = files("spmilp.export").joinpath("c/spmilp_kernels.c").read_text("utf-8")
    return dict(re.findall(r"\[SPMILP_OPERATOR_(\w+)\] = (\w+)", source))


def _variant(call: Call) -> _Variant:
    read = 0 if call.previous is None else call.previous.sums
    return call.operator, call.part, read, call.output.sums


def _box_numbers(call: Call) -> Iterator[int]:
    for operand in (*call.inputs, call.previous, call.output):
        if operand is not None:
            yield from operand.box


def joined(copies: Iterable[Copy]) -> tuple[Copy, ...]:
    """Return the same bytes in fewer copies: those at equal distances are turns of one loop."""
    found, fewer = list[Copy](), list(copies)
    while len(fewer) != len(found):
        found, fewer = fewer, []
        first = 0
        while first < len(found):
            one, end = found[first], first + 1
            while end < len(found) and _is_next(found[first:end], found[end]):
                end += 1
            if end > first + 1:
                loop = (end - first, *_steps(one, found[first + 1]))
                shape = replace(one.shape, loops=(loop, *one.shape.loops))
                one = one._replace(shape=shape)
            fewer.append(one)
            first = end
    return tuple(fewer)


def _is_next(turns: Sequence[Copy], copy: Copy) -> bool:
    """Say whether a copy can be the next turn of a loop."""
    one, steps = turns[0], _steps(turns[-1], copy)
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
        self._lists = subject.lists
        self._running = [one.core for one in self._lists.cores if one.commands]
        self._bases = [*memory_macros(subject), f"{subject.prefix.upper()}_IMAGE"]
        actions = Actions(subject)
        self._calls = [actions.task(task.index) for task in subject.problem.tasks]
        self._copies = [actions.transfer(each.index) for each in subject.plan.transfers]
        every = [call for task in self._calls for call in task]
        self._constants = _Constants(self._start, actions.operators, actions.words, every)
        self._functions = self._made_functions()
        self._kept = actions.kept()
        self._arrays = KeptArrays(subject, self._kept, "code")

    def files(self) -> dict[str, bytes]:
        """Return all files."""
        subject, start = self._subject, self._start
        own = {f"{start}_{name}.c": text for name, text in self._functions.items()}
        own |= {
            f"{start}.h": self._header(),
            f"{start}.c": self._source(),
            f"{start}_kernels.h": self._kernels(),
        }
        plan = [name for name in own if name.endswith(".c")]
        return {
            "spmilp_types.h": types_header().encode(),
            **image_files(subject, self._kept.image),
            **{name: text.encode() for name, text in own.items()},
            **program_files(subject, self._kept, plan, self._constants.inputs, is_code=True),
        }

    def _made_functions(self) -> dict[str, str]:
        """Return a source for each core and each engine that has commands."""
        found: dict[str, list[str]] = {}
        for one in self._lists.cores:
            if one.commands:
                found[f"core{one.core}"] = [*self._list(one, self._running.index(one.core))]
        for number, channel in enumerate(self._lists.channels):
            if channel.commands:
                lines = found.setdefault(f"engine{channel.engine}", [])
                lines += [*([""] if lines else []), *self._list(channel, number)]
        begin = [*self._head("A plan in straight code."), "", f'#include "{self._start}.h"', ""]
        return {name: "\n".join([*begin, *lines, ""]) for name, lines in found.items()}

    def _name(self, one: CoreCommands | ChannelCommands) -> str:
        """Return the name of a list's function."""
        if isinstance(one, CoreCommands):
            return f"{self._start}_core{one.core}"
        return f"{self._start}_engine{one.engine}_channel{one.channel}"

    def _list(self, one: CoreCommands | ChannelCommands, number: int) -> Iterator[str]:
        """Yield the function of a list, of a core with workspace ``number`` or of that channel.

        A signal says that the transfers before it have completed; until then they queue.
        """
        problem, plan = self._subject.problem, self._subject.plan
        if isinstance(one, CoreCommands):
            yield f"/* Core {comment(problem.machine.cores[one.core].name)}. */"
        else:
            engine = comment(problem.machine.engines[one.engine].name)
            yield f"/* Channel {one.channel} of engine {engine}. */"
        yield from (f"SPMILP_LIST({self._name(one)})", "{", "    SPMILP_BEGIN")
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
                case Run(task):
                    yield f"    /* task {task}: {comment(problem.tasks[task].name)} */"
                    for call in self._calls[task]:
                        yield from self._call(call, number)
                case Move(transfer):
                    moved = plan.residencies[plan.transfers[transfer].source]
                    yield f"    /* transfer {transfer}: {comment(self._subject.name(moved))} */"
                    for copy in self._copies[transfer]:
                        yield f"    spmilp_dma_start({number}U, {self._copy(copy, 0)});"
                    is_moving = True
        if is_moving:
            yield f"    SPMILP_DMA_WAIT({number}U);"
        yield from ("    SPMILP_END", "}")

    def _call(self, call: Call, workspace: int) -> Iterator[str]:
        """Yield the gathering of what does not lie packed, a call, and the scattering after it."""
        previous = [] if call.previous is None else [call.previous]
        given = [*call.inputs, *previous]
        yield from self._copies_of(given, workspace)
        addresses = ", ".join(
            "0" if each is None else self._address(each.place, workspace)
            for each in (*given, call.output)
        )
        constants = f"&{self._constants.operator(call)}, {self._constants.boxes(call)}"
        yield f"    SPMILP_RUN({constants},"
        yield f"               {addresses});"
        yield from self._copies_of([call.output], workspace)

    def _copies_of(self, operands: Iterable[Operand | None], workspace: int) -> Iterator[str]:
        rows = [
            f"{{{self._copy(copy, workspace)}}}"
            for each in operands
            if each is not None
            for copy in joined(each.copies or ())
        ]
        if rows:
            yield f"    SPMILP_COPY({_BETWEEN.join(rows)});"

    def _copy(self, copy: Copy, workspace: int) -> str:
        to, source = (self._address(e, workspace) for e in (copy.destination, copy.source))
        return f"{to}, {source}, {self._constants.shape(copy.shape)}"

    def _address(self, address: Address, workspace: int) -> str:
        base = f"{self._subject.prefix.upper()}_WORKSPACE({workspace})"
        if address.space != WORKSPACE_SPACE:
            base = self._bases[address.space - FIRST_SPACE]
        return f"{base} + {address.offset}U"

    def _head(self, summary: str) -> list[str]:
        return head(self._subject, summary, title=TITLE)

    def _header(self) -> str:
        subject, start, upper = self._subject, self._start, self._start.upper()
        prefix, workspace = subject.prefix.upper(), f"{start}_workspace"
        lines = self._head("A plan in straight code: functions, memories and constants.")
        lines += ["", '#include "spmilp_straight.h"', "", *self._arrays.sizes()]
        lines += [f"#define {upper}_CHANNELS {len(self._lists.channels)}U"]
        lines += [f"#define {upper}_WORKSPACE_BYTES UINT64_C({self._kept.workspace})"]
        lines += [f"#define {upper}_SCHEME SPMILP_SCHEME_{self._lists.scheme.name}", ""]
        lines += workspace_count(len(self._running))
        words = f"{upper}_WORKSPACE_BYTES / 8U + 1U"
        place = f"{workspace}[(number) % SPMILP_WORKSPACES]"
        declared = [
            f"extern uint64_t {workspace}[SPMILP_WORKSPACES][{words}];",
            f"#define {prefix}_WORKSPACE(number) ((uint8_t *){place})",
        ]
        for memory, macro in zip(subject.problem.machine.memories, self._bases, strict=False):
            name = f"{start}_memory{memory.index}"
            declared += [f"extern uint64_t {name}[];"]
            declared += [f"#ifndef {macro} /* {comment(memory.name)}: or an address of your own */"]
            declared += [f"#define {macro} ((uint8_t *){name})", "#endif"]
        image = image_in_program(subject, self._kept.image)
        declared += [f"extern const uint8_t {image}[];", f"#define {prefix}_IMAGE {image}", ""]
        declared += [f"SPMILP_LIST({self._name(e)});" for e in self._lists.lists if e.commands]
        declared += [
            "/* In the order of cores and channels; null for one without commands. */",
            f"extern spmilp_function *const {start}_lists[];",
            *self._arrays.declarations(),
            *self._constants.declarations(),
        ]
        lines += [*linkage(declared), "", *self._arrays.initialiser()]
        return guarded(start, lines)

    def _source(self) -> str:
        """Return the definitions of what functions have in common."""
        start = self._start
        lines = self._head("What the functions of a plan have in common.")
        lines += ["", f'#include "{start}.h"', f'#include "{start}_kernels.h"', ""]
        lines += [*SECTION_MACRO, ""]
        for array in self._arrays.all:
            lines += [*array.definition(), ""]
        lines += [*self._constants.definitions(), ""]
        lines += [f"spmilp_function *const {start}_lists[] = {{"]
        lines += [f"    {self._name(e) if e.commands else '0'}," for e in self._lists.lists]
        return "\n".join([*lines, "};", ""])

    def _kernels(self) -> str:
        """Return the header that says which function computes what."""
        lines = self._head("Kernels of a plan: define a macro to put another one in place.")
        lines += ["", '#include "spmilp_kernels.h"', "", *self._constants.kernels()]
        return guarded(f"{self._start}_kernels", lines)
