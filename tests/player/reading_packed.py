"""Reads command lists from the bits of the release profile, as docs/player.md describes them."""

from collections.abc import Iterator

from spmilp.commands.commands import Command, Move, Run, Signal, Wait
from spmilp.export.packed.packed import Index, PackedPlan

AFTER_SIGNAL, AFTER_WAIT, AFTER_WORK, EVENT, COUNT, SIGNALLED, CODES = 0, 1, 3, 4, 5, 7, 8


class Reader:
    """Bits from a position on, the lowest of each field first."""

    def __init__(self, content: bytes, at: int) -> None:
        self.whole, self.at = int.from_bytes(content, "little"), at

    def take(self, width: int) -> int:
        value = self.whole >> self.at & ((1 << width) - 1)
        self.at += width
        return value

    def number(self) -> int:
        match self.take(2):
            case 0:
                return 0
            case 1:
                return 1 + self.take(3)
            case 2:
                return 9 + self.take(6)
        width = self.take(5)
        return 1 << (width - 1) | self.take(width - 1)

    def symbol(self, codes: dict[tuple[int, int], int]) -> int:
        length = code = 0
        while (length, code) not in codes:
            length, code = length + 1, 2 * code + self.take(1)
        return codes[length, code]


def entry(plan: PackedPlan, index: Index, number: int) -> int:
    return Reader(plan.bits, index.at + number * index.width).take(index.width)


def code_of(table: Reader) -> dict[tuple[int, int], int]:
    """Return the symbol of each length and code."""
    width, count_bits, longest = (table.take(5) for _ in range(3))
    counts = [table.take(count_bits) for _ in range(longest + 1)]
    found, code = {}, 0
    for length, count in enumerate(counts):
        for _ in range(count):
            found[length, code] = table.take(width)
            code += 1
        code *= 2
    return found


class Fields:
    """The fields of a template, with what fills its holes from the commands."""

    def __init__(self, shape: Reader, holes: Reader) -> None:
        self.shape, self.holes, self.raws = shape, [holes], []
        groups = shape.take(2)
        self.group_bits = 2 if groups else 0
        for _ in range(groups):
            table, own = Reader(b"", shape.number()), shape.number()
            table.whole = shape.whole
            table.at += own * holes.take(shape.take(5))
            self.holes.append(table)

    def next(self) -> int:
        if not self.shape.take(1):
            return self.shape.number()
        if self.shape.take(1):
            raw = self.raws[self.shape.number()]
        else:
            width = self.shape.take(5)
            raw = self.holes[self.shape.take(self.group_bits)].take(width)
            self.raws.append(raw)
        return self.shape.number() + raw * self.shape.number()

    def skip(self, count: int) -> None:
        for _ in range(count):
            self.next()

    def copy(self) -> None:
        self.next()
        self.skip(3 * self.next())


def skip_transfer(fields: Fields) -> None:
    for _ in range(fields.next()):
        fields.skip(4)
        fields.copy()


def skip_task(plan: PackedPlan, fields: Fields) -> None:
    for _ in range(fields.next()):
        operator = Reader(plan.bits, entry(plan, plan.operators, fields.next()))
        _, inputs, _, limits = (operator.number() for _ in range(4))
        if limits:
            operator.number()
        for _ in range(4 * operator.number()):
            operator.number()
        ranks = []
        for _ in range(inputs + 1):
            rank = operator.number()
            ranks.append(rank - 1)
            for _ in range(rank):
                operator.number()
            if operator.number():
                for _ in range(5):
                    operator.number()
        fields.next()
        for rank in (rank for rank in ranks[1:] if rank >= 0):
            skip_operand(fields, rank)
        if fields.next():
            skip_operand(fields, ranks[0])
        skip_operand(fields, ranks[0])


def skip_operand(fields: Fields, rank: int) -> None:
    is_packed = fields.next()
    fields.skip(1 + 2 * rank)
    if not is_packed:
        fields.skip(2)
        return
    fields.next()
    for _ in range(fields.next()):
        fields.skip(3)
        fields.copy()


def commands_in(plan: PackedPlan, cores: int, lists: int) -> Iterator[tuple[Command, ...]]:
    """Yield the commands of each list; tasks and transfers are numbered as they come."""
    codes = [code_of(Reader(plan.bits, entry(plan, plan.codes, n))) for n in range(2 * CODES)]
    runs = moves = 0
    head = Reader(plan.bits, plan.lists)
    for number in range(lists):
        _, event, length, start = (head.take(width) for width in plan.widths)
        own = codes[:CODES] if number < cores else codes[CODES:]
        reader = Reader(plan.bits, plan.commands + start)
        found: list[Command] = []
        before = AFTER_SIGNAL
        for done in range(length):
            symbol = reader.symbol(own[before])
            if symbol == 0:
                waited = reader.symbol(own[EVENT])
                likely = entry(plan, plan.totals, waited) * done // length
                folded = reader.symbol(own[COUNT + (waited >= cores)])
                away = -(folded + 1) // 2 if folded % 2 else folded // 2
                found.append(Wait(waited, likely + away))
                before = AFTER_WAIT + (waited >= cores)
            elif symbol == 1:
                found.append(Signal(event - 1 if event else reader.symbol(own[SIGNALLED])))
                before = AFTER_SIGNAL
            else:
                is_task = number < cores
                index = plan.tasks if is_task else plan.transfers
                fields = Fields(Reader(plan.bits, entry(plan, index, symbol - 2)), reader)
                before = AFTER_WORK
                if is_task:
                    skip_task(plan, fields)
                    found.append(Run(runs))
                    runs += 1
                else:
                    skip_transfer(fields)
                    found.append(Move(moves))
                    moves += 1
        yield tuple(found)
