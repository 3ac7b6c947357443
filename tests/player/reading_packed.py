"""Reads command lists from the bits of the release profile, as docs/player.md describes them."""

from collections.abc import Iterator

from spmilp.commands.commands import Command, Move, Run, Signal, Wait
from spmilp.export.packed.packed import Index, PackedPlan


class Reader:
    """Bits from a position on, the lowest of each field first."""

    def __init__(self, content: bytes, at: int) -> None:
        self.whole, self.at = int.from_bytes(content, "little"), at

    def take(self, width: int) -> int:
        value = self.whole >> self.at & ((1 << width) - 1)
        self.at += width
        return value

    def number(self) -> int:
        width = self.take(5)
        return width if width < 2 else 1 << (width - 1) | self.take(width - 1)


def row_of(plan: PackedPlan, index: Index, number: int) -> Reader:
    """Return a reader at the beginning of a template or an operator."""
    return Reader(plan.bits, Reader(plan.bits, index.at + number * index.width).take(index.width))


class Fields:
    """The fields of a template, with what fills its holes from the commands."""

    def __init__(self, shape: Reader, holes: Reader) -> None:
        self.shape, self.holes, self.raws = shape, holes, []

    def next(self) -> int:
        if not self.shape.take(1):
            return self.shape.number()
        if self.shape.take(1):
            raw = self.raws[self.shape.number()]
        else:
            raw = self.holes.take(self.shape.take(5))
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
        operator = row_of(plan, plan.operators, fields.next())
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
    widths = plan.widths
    runs = moves = 0
    head = Reader(plan.bits, plan.lists)
    for number in range(lists):
        _, event, length, start = (head.take(width) for width in widths.of_head())
        reader = Reader(plan.bits, plan.commands + start)
        found: list[Command] = []
        for _ in range(length):
            if not reader.take(1):
                found.append(Wait(reader.take(widths.event), reader.take(widths.count)))
            elif reader.take(1):
                found.append(Signal(event - 1 if event else reader.take(widths.event)))
            elif number < cores:
                template = row_of(plan, plan.tasks, reader.take(plan.tasks.row_bits))
                skip_task(plan, Fields(template, reader))
                found.append(Run(runs))
                runs += 1
            else:
                template = row_of(plan, plan.transfers, reader.take(plan.transfers.row_bits))
                skip_transfer(Fields(template, reader))
                found.append(Move(moves))
                moves += 1
        yield tuple(found)
