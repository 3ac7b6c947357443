"""A plan as straight code in C: a function for each core and each DMA channel."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from spmilp.commands.commands import (
    ChannelCommands,
    Command,
    CoreCommands,
    LoopCommand,
    LoopWait,
    Move,
    Run,
    Signal,
    StreamCommands,
    Wait,
)
from spmilp.export.actions import (
    Actions,
    Call,
    Copy,
    Described,
    Operand,
    OperatorCode,
    Pool,
    Scale,
    repeated,
)
from spmilp.export.codes import ATTRIBUTES, OPERATORS, RANK, AttributeType, Elements, Part
from spmilp.export.names import comment
from spmilp.export.places import FIRST_SPACE, WORKSPACE_SPACE, Address
from spmilp.export.sources import (
    SECTION,
    files_beside,
    filled,
    marks_of,
    memory_macros,
    program_files,
)
from spmilp.export.subject import Subject
from spmilp.machine.controllers import StridedCopy
from spmilp.units import Bytes

TITLE = ("spmilp-code", "1.0")

_WIDTHS = ((1, "uint8_t", 2**8), (2, "uint16_t", 2**16), (4, "int32_t", 2**31))
"""Types of the numbers of boxes: bytes, C type, and the number below which it suffices."""

_Variant = tuple[int, int, int, int]
"""Operator, part of the reduction, types of the partial sums read and written (0: none)."""

_BETWEEN = ",\n                "


class _Named:
    """Numbered names of C constants, by the text of their initialisers: equal ones share a name."""

    def __init__(self, start: str) -> None:
        self._start, self.known = start, dict[tuple[str, ...], str]()

    def name(self, *parts: str, kind: str = "") -> str:
        """Return the name of a constant."""
        return self.known.setdefault(parts, f"{self._start}{kind}{len(self.known)}")


class _Constants:
    """Names and defines the C constants that calls and transfers share.

    It is made with all calls that will be asked for, so that the boxes of all tiles of an operator
    have the same integer type. Shapes of tensors are added to the pool of words.
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
        """Return the name of the constant that a call shares with calls for other tiles."""
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
            f"SPMILP_VALUE_{AttributeType(each.type).name}, {each.words}U, {each.first}U}}"
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
    source = files("spmilp.export").joinpath("c/plan/spmilp_kernels.c").read_text("utf-8")
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
    """Return a function for each list, what they need, and a program that runs them."""
    return _StraightCode(subject).files()


class _StraightCode:
    """Makes the files of one plan."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._name = f"{subject.prefix}_code"
        self._running = subject.running_cores
        self._bases = [*memory_macros(subject), f"{subject.prefix.upper()}_IMAGE"]
        self._actions = Actions(subject)
        self._calls = [self._actions.calls_of(task.index) for task in subject.problem.tasks]
        self._copies = [self._actions.copies_of(move.index) for move in subject.plan.transfers]
        operators, words = self._actions.operators, self._actions.words
        self._constants = _Constants(self._name, operators, words, self._actions.calls)

    def files(self) -> dict[str, bytes]:
        """Return all files."""
        subject, name, lists = self._subject, self._name, self._subject.lists
        # Operators put the shapes of their tensors into the pool of words.
        functions = self._functions()
        declared, defined = (
            "\n".join(lines)
            for lines in (self._constants.declarations(), self._constants.definitions())
        )
        listed = zip(lists.lists, subject.has_commands, strict=True)
        named = [self._list_name(one) if has else "0" for one, has in listed]
        memories = zip(subject.problem.machine.memories, self._bases, strict=False)
        marks = {
            **marks_of(self._actions, "code", TITLE),
            "BASE": subject.prefix.upper(),
            "CHANNELS": len(lists.channels),
            "WORKSPACE": self._actions.workspace,
            "SCHEME": lists.scheme.name,
            "MEMORIES": "\n".join(
                f"extern uint64_t {name}_memory{memory.index}[];\n"
                f"#ifndef {macro} /* {comment(memory.name)}: or an address of your own */\n"
                f"#define {macro} ((uint8_t *){name}_memory{memory.index})\n"
                "#endif"
                for memory, macro in memories
            ),
            "LISTS_DECLARED": "\n".join(f"SPMILP_LIST({e});" for e in named if e != "0"),
            "LISTS_NAMED": "\n".join(f"    {each}," for each in named),
            "CONSTANTS": declared,
            "CONSTANTS_DEFINED": defined,
            "KERNELS": "\n".join(self._constants.kernels()),
        }
        for end in "hc":
            of_stream = "" if subject.loop is None else filled(f"stream.{end}", marks)
            marks[f"STREAM_{end.upper()}"] = of_stream
        own = {f"{name}.h": "code.h", f"{name}.c": "code.c", f"{name}_kernels.h": "code_kernels.h"}
        found = {
            f"{name}_{part}.c": filled("code_lists.c", {**marks, "FUNCTIONS": "\n".join(lines)})
            for part, lines in functions.items()
        } | {file: filled(template, marks) for file, template in own.items()}
        plan = [file for file in found if file.endswith(".c")]
        inputs = self._constants.inputs
        return {
            **{file: text.encode() for file, text in found.items()},
            **files_beside(self._actions, marks),
            **program_files(self._actions, marks, "code", plan, inputs),
        }

    def _functions(self) -> dict[str, list[str]]:
        """Return the functions of each core and of each engine that has commands."""
        found: dict[str, list[str]] = {}
        for number, core in enumerate(self._running):
            found[f"core{core}"] = [*self._list(self._subject.lists.cores[core], number)]
        has_commands = self._subject.has_commands[len(self._subject.lists.cores) :]
        for number, channel in enumerate(self._subject.lists.channels):
            if has_commands[number]:
                lines = found.setdefault(f"engine{channel.engine}", [])
                lines += [*([""] if lines else []), *self._list(channel, number)]
        return found

    def _list_name(self, one: CoreCommands | ChannelCommands) -> str:
        """Return the name of a list's function."""
        if isinstance(one, CoreCommands):
            return f"{self._name}_core{one.core}"
        return f"{self._name}_engine{one.engine}_channel{one.channel}"

    def _list(self, one: CoreCommands | ChannelCommands, number: int) -> Iterator[str]:
        """Yield the C function of a list; ``number`` is the core's workspace, or the channel.

        A signal says that the transfers before it have completed; until then they queue.
        """
        machine, loop = self._subject.problem.machine, self._subject.loop
        place = self._subject.lists.lists.index(one)
        if not isinstance(one, CoreCommands):
            engine = comment(machine.engines[one.engine].name)
            yield f"/* Channel {one.channel} of engine {engine}. */"
        elif one.core < len(machine.cores):
            yield f"/* Core {comment(machine.cores[one.core].name)}. */"
        else:
            yield "/* The application. */"
        yield from (f"SPMILP_LIST({self._list_name(one)})", "{")
        if loop is not None:
            yield f"    uint32_t *const turn = &{self._name}_turns[{place}];"
        yield "    SPMILP_BEGIN"
        yield from self._lines(one.commands, number, None)
        if loop is not None:
            last = f"{self._name}_inferences + {loop.last_stage}U"
            yield f"    for (*turn = 0U; *turn < {last}; ++*turn) {{"
            yield from self._lines(loop.body[place], number, loop)
            yield "    }"
        yield from ("    SPMILP_END", "}")

    def _lines(
        self, commands: Iterable[Command | LoopCommand], number: int, turns: StreamCommands | None
    ) -> Iterator[str]:
        """Yield what some commands do, in a turn of a loop or once."""
        is_moving, per_turn = False, turns.signals_of_a_turn() if turns else ()
        counts = turns is not None and turns.highest is None
        for command in commands:
            match command:
                case Wait(event, count):
                    yield f"    SPMILP_WAIT({event}U, {count}U);"
                case LoopWait(event, _, back) if not counts:
                    taken = f"*turn >= {back}U" if back else "1U"
                    yield f"    SPMILP_WAIT({event}U, {taken});"
                case LoopWait(event, count, back):
                    since = f"(*turn - {back}U)" if back else "*turn"
                    # Before turn `back` that is less than nothing, which events have reached.
                    reached = f"{count}U + {since} * {per_turn[event]}U"
                    yield f"    SPMILP_WAIT({event}U, {reached});"
                case Signal(event):
                    if is_moving:
                        yield f"    SPMILP_DMA_WAIT({number}U);"
                    is_moving = False
                    yield f"    spmilp_signal({event}U);"
                case _:
                    yield from self._work(command, number, turns)
                    is_moving = isinstance(command, Move)
        if is_moving:
            yield f"    SPMILP_DMA_WAIT({number}U);"

    def _work(
        self, command: Run | Move, number: int, turns: StreamCommands | None
    ) -> Iterator[str]:
        """Yield a task or a transfer; in a turn if its inference is there, at that's addresses."""
        ways = repeated(self._ways(command, number))
        if turns is None:
            yield from ways[0]
            return
        stage, rounds = turns.stage(command), len(ways)
        inference = f"*turn - {stage}U" if stage else "*turn"
        yield f"    if ({inference} < {self._name}_inferences) {{"
        if not rounds:
            hands_in = command == Run(len(self._subject.problem.tasks))
            what = "spmilp_hand_in" if hands_in else "spmilp_take"
            yield f"    SPMILP_UNLESS({what}({inference}));"
        elif rounds == 1:
            yield from ways[0]
        else:
            yield f"    switch (({inference}) % {rounds}U) {{"
            for way, lines in enumerate(ways):
                yield from (f"    case {way}U:", *lines, "    break;")
            yield from ("    default: break;", "    }")
        yield "    }"

    def _ways(self, command: Run | Move, number: int) -> list[list[str]]:
        """Return the lines of a task or transfer at the addresses of each round of a stream.

        There are none of what the application does.
        """
        problem, plan = self._subject.problem, self._subject.plan
        if isinstance(command, Move):
            moved = plan.residencies[plan.transfers[command.transfer].source]
            title = f"    /* transfer {command.transfer}: {comment(self._subject.name(moved))} */"
            starts = f"    spmilp_dma_start({number}U, "
            return [
                [title, *(f"{starts}{self._copy(copy, 0)});" for copy in copies)]
                for copies in self._copies[command.transfer]
            ]
        if command.task >= len(problem.tasks):
            return []
        title = f"    /* task {command.task}: {comment(problem.tasks[command.task].name)} */"
        return [
            [title, *(line for call in calls for line in self._call(call, number))]
            for calls in self._calls[command.task]
        ]

    def _call(self, call: Call, workspace: int) -> Iterator[str]:
        """Yield a call, with copies before it of operands that do not lie packed, and after it."""
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
