"""Problems built by hand, by names: no index, no slice number, no place in a tensor."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from spmilp.errors import ArgumentError
from spmilp.formats import near_matches
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.problem.objective import Objective, Quantity
from spmilp.problem.problem import (
    Buffer,
    BufferKind,
    DramTensor,
    Place,
    Problem,
    Slice,
    Task,
    whole_slice,
)
from spmilp.units import Bytes, Extents, MemoryIdx

ITEMS: Mapping[str, Bytes] = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64"), 8),
}
"""Bytes of an element of each data type."""

Shape: TypeAlias = int | Sequence[int]
Written: TypeAlias = tuple[str, Shape, str]
"""Name, shape and data type of what a task writes."""


@dataclass(frozen=True, slots=True)
class View:
    """A box of some data: what a task reads. ``start`` and ``extent`` count elements."""

    data: "Data"
    start: Extents
    extent: Extents

    @property
    def bytes(self) -> Bytes:
        """Size in bytes, packed."""
        return prod(self.extent) * ITEMS[self.data.dtype]

    def __repr__(self) -> str:
        if self.extent == self.data.shape:
            return self.data.name
        box = zip(self.start, self.extent, strict=True)
        return f"{self.data.name}[{', '.join(f'{a}:{a + n}' for a, n in box)}]"


@dataclass(frozen=True, slots=True, eq=False)
class Data:
    """Something that tasks read or write; ``data[0:8, :]`` is the part that a task reads of it.

    :meth:`ProblemBuilder.input`, :meth:`~ProblemBuilder.weight` and :meth:`~ProblemBuilder.task`
    return it. ``shape`` is row major.
    """

    name: str
    shape: Extents
    dtype: str

    def __getitem__(self, key: slice | int | tuple[slice | int, ...]) -> View:
        """Return a part: a half-open interval along each axis; axes that are left out are whole.

        Raises
        ------
        ValueError
            If an interval is empty or leaves its axis, or there are more of them than axes.
        """
        keys = key if isinstance(key, tuple) else (key,)
        axes = len(self.shape)
        _require(len(keys) <= axes, f"{self.name}: {len(keys)} slices, but {axes} axes")
        start, extent = [0] * axes, list(self.shape)
        for axis, (part, length) in enumerate(zip(keys, self.shape, strict=False)):
            part = slice(part, part + 1) if isinstance(part, int) else part
            where = f"{self.name}: along axis {axis}"
            _require(part.step in (None, 1), f"{where} a step of {part.step}, expected 1")
            first = 0 if part.start is None else part.start
            stop = length if part.stop is None else part.stop
            said = f"{where} [{first}, {stop}), which is [0, {length})"
            _require(0 <= first < stop <= length, said)
            start[axis], extent[axis] = first, stop - first
        return View(self, tuple(start), tuple(extent))

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype} {'x'.join(map(str, self.shape))}"


class _Home(NamedTuple):
    """The box of a DRAM tensor, or the memory, where some data starts or ends."""

    kind: BufferKind
    memory: MemoryIdx
    tensor: str
    shape: Extents
    start: Extents


class _NamedTask(NamedTuple):
    """A task whose references are names; ``fields`` are those of a task that need no reference."""

    reads: tuple[View, ...]
    writes: tuple[Data, ...]
    in_place: tuple[tuple[View, Data], ...]
    after: tuple[str, ...]
    partial: bool
    fields: Mapping[str, Any]


class ProblemBuilder:
    """Builds a problem by names: inputs, weights, tasks, outputs.

    Everything that is added has a name of its own. What is wrong is a :class:`ValueError` that says
    what, by name, with both numbers.

    Parameters
    ----------
    machine
        A preset's name, a YAML file, or a machine.
    name
        What the problem is called.
    objective
        ``makespan``, ``dram_traffic``, ``energy`` or ``peak_spm``; the others break ties.

    Examples
    --------
    >>> b = spmilp.ProblemBuilder("mesh4x4")
    >>> x = b.input("x", (16, 64), "int8")
    >>> w = b.weight("w", (64, 64), "int8")
    >>> for i in range(2):
    ...     part = x[8 * i : 8 * i + 8]
    ...     y = b.task(f"mm{i}", reads=[part, w], writes=(f"y{i}", (8, 64), "int32"), cycles=400)
    ...     b.output(y, tensor=("y", (16, 64)), at=(8 * i, 0))
    >>> spmilp.solve(b.build(), solver="cpsat")
    """

    def __init__(
        self,
        machine: str | Path | MachineFile | Machine = "mesh4x4",
        *,
        name: str = "problem",
        objective: str = Quantity.MAKESPAN,
    ) -> None:
        known = ", ".join(Quantity)
        _require(objective in list(Quantity), f"objective {objective}: there are {known}")
        self._file = as_machine_file(machine)
        self._name = name
        self._objective = Objective.of(Quantity(objective))
        self._data: dict[str, Data] = {}
        self._starts: dict[str, _Home] = {}
        self._ends: dict[str, _Home] = {}
        self._tasks: dict[str, _NamedTask] = {}

    @property
    def machine(self) -> Machine:
        """The machine that the problem is for."""
        return self._file.machine

    def input(
        self, name: str, shape: Shape, dtype: str = "int8", *, memory: str | None = None
    ) -> Data:
        """Add a network input, which lies in DRAM at the start.

        Parameters
        ----------
        shape
            Elements along each axis, row major.
        dtype
            ``bool``, ``int8``, ``uint8``, ``int16``, ``float16``, ``int32``, ``float32`` and so on.
        memory
            The memory where it lies; by default the machine's first DRAM.

        Raises
        ------
        ValueError
            If the name is taken, or shape, data type or memory are not possible.
        """
        return self._add_start(name, shape, dtype, memory, BufferKind.INPUT)

    def weight(
        self, name: str, shape: Shape, dtype: str = "int8", *, memory: str | None = None
    ) -> Data:
        """Add a weight, which lies in DRAM at the start; or in a scratchpad, if ``memory`` says so.

        The arguments are those of :meth:`input`.
        """
        return self._add_start(name, shape, dtype, memory, BufferKind.WEIGHT)

    def _add_start(
        self, name: str, shape: Shape, dtype: str, memory: str | None, kind: BufferKind
    ) -> Data:
        who = f"{kind} {name}"
        data = self._fresh((name, shape, dtype), who)
        origin = (0,) * len(data.shape)
        self._data[name] = data
        self._starts[name] = _Home(kind, self._memory(memory, who), name, data.shape, origin)
        return data

    def task(
        self,
        name: str,
        *,
        cycles: int | Mapping[str, int],
        reads: Iterable[str | Data | View] | str | Data | View = (),
        writes: Written | Iterable[Written] = (),
        scratch: Bytes = 0,
        after: Iterable[str | Data] | str | Data = (),
        in_place: Iterable[tuple[str | Data | View, str]] = (),
        energy: int | Mapping[str, int] | None = None,
        partial: bool = False,
    ) -> Any:
        """Add a task: one unit of work that runs on one core.

        Parameters
        ----------
        cycles
            How long it runs on every kind of core, launch included; or ``{kind: cycles}`` for the
            kinds that can run it.
        reads
            What must be in the core's memory while it runs: data, parts of data, or names.
        writes
            ``(name, shape, dtype)`` of what it writes, or several of them.
        scratch
            Bytes that it needs besides.
        after
            Tasks that must have ended before it starts, besides those that write what it reads: by
            name, or by what they write.
        in_place
            ``(read, written)`` pairs that may share their bytes: the name of what it writes takes
            the place of what it reads, which must have the same size.
        energy
            Femtojoules, as ``cycles``; left out where unknown.
        partial
            What it writes are partial sums, and shown as such.

        Returns
        -------
        Data or tuple of Data
            What it writes, to be read by others: one, or a tuple where ``writes`` has several.

        Raises
        ------
        ValueError
            If a name is taken or not known, or a number is not possible.
        """
        who = f"task {name}"
        _is_new(name, "task", self._tasks)
        one = isinstance(writes, tuple) and len(writes) == 3 and isinstance(writes[0], str)
        wanted: list[Any] = [writes] if one else list(writes)
        views = tuple(self._view(read, who) for read in _as_list(reads))
        written = tuple(self._fresh(each, who) for each in wanted)
        _require(scratch >= 0, f"{who}: scratch of {scratch} B, expected 0 or more")
        twice = next((view for n, view in enumerate(views) if view in views[:n]), None)
        _require(twice is None, f"{who}: reads {twice!r} twice")
        by_name = {data.name: data for data in written}
        _require(len(by_name) == len(written), f"{who}: writes something twice")
        pairs = [(self._view(read, who), by_name.get(into)) for read, into in in_place]
        for (view, data), (_, into) in zip(pairs, in_place, strict=True):
            _require(view in views, f"{who}: in place of {view!r}, which it does not read")
            _require(data is not None, f"{who}: in place {into!r}, which it does not write")
            size, room = data[()].bytes if data else 0, view.bytes
            _require(size == room, f"{who}: {into} of {size} B in place of {view!r} of {room} B")
        self._tasks[name] = _NamedTask(
            reads=views,
            writes=written,
            in_place=tuple((view, data) for view, data in pairs if data),
            after=tuple(dict.fromkeys(self._earlier(each, who) for each in _as_list(after))),
            partial=partial,
            fields={
                "name": name,
                "cycles": self._per_kind(cycles, who, "cycles", 1),
                "energy": () if energy is None else self._per_kind(energy, who, "energy", 0),
                "scratch": scratch,
            },
        )
        self._data |= by_name
        return written[0] if one else written

    def output(
        self,
        data: str | Data,
        *,
        tensor: tuple[str, Shape] | None = None,
        at: Shape | None = None,
        memory: str | None = None,
    ) -> None:
        """Say that something a task writes must be in DRAM at the end.

        Parameters
        ----------
        tensor
            ``(name, shape)`` of the whole output that it is a tile of; by default it is a whole
            output itself.
        at
            The element of the tensor where the tile begins; by default the first.
        memory
            The memory where it ends; by default the machine's first DRAM.

        Raises
        ------
        ValueError
            If there is no such data, no task writes it, it is an output already, or the tile leaves
            its tensor.
        """
        found = self._known(data, "output")
        who, name = f"output {found.name}", found.name
        _require(name not in self._starts, f"{who}: no task writes it")
        _require(name not in self._ends, f"{who}: is an output already")
        whole, shape = (name, found.shape) if tensor is None else tensor
        extents = _extents(shape, who)
        start = (0,) * len(extents) if at is None else _as_tuple(at)
        axes = len(found.shape)
        said = f"{who}: {axes} axes at {len(start)} in a tensor of {len(extents)}"
        _require(len(start) == len(extents) == axes, said)
        for axis, (first, length, end) in enumerate(zip(start, found.shape, extents, strict=True)):
            said = f"[{first}, {first + length}) along axis {axis} of {whole}, which is [0, {end})"
            _require(0 <= first <= end - length, f"{who}: {said}")
        home = _Home(BufferKind.OUTPUT, self._memory(memory, who), whole, extents, start)
        self._ends[name] = home

    def build(self) -> Problem:
        """Return the problem.

        Raises
        ------
        ValueError
            If there is no task, something is never read and is no output, or tiles of an output
            differ in type or overlap.
        """
        _require(self._tasks, f"{self._name}: has no task")
        views = [view for task in self._tasks.values() for view in task.reads]
        used = {view.data.name for view in views} | set(self._ends)
        for name in self._data:
            _require(name in used, f"{name}: no task reads it, and it is no output")
        tensors = self._tensors()
        numbers = {name: index for index, name in enumerate(self._data)}
        buffers = [self._buffer(name, index, tensors) for name, index in numbers.items()]
        # Whole buffers come first, then each part that is read, once.
        slices = list(map(whole_slice, buffers))
        slice_of = {data[()]: index for index, data in enumerate(self._data.values())}
        for view in views:
            if view not in slice_of:
                index = slice_of[view] = len(slices)
                parent, box = numbers[view.data.name], (view.start, view.extent)
                slices.append(
                    Slice(index=index, buffer=parent, start=box[0], extent=box[1], bytes=view.bytes)
                )
        positions = {name: index for index, name in enumerate(self._tasks)}
        tasks = tuple(
            Task(
                index=positions[name],
                reads=tuple(slice_of[view] for view in task.reads),
                writes=tuple(numbers[data.name] for data in task.writes),
                in_place=tuple((slice_of[v], numbers[data.name]) for v, data in task.in_place),
                after=tuple(positions[other] for other in task.after),
                **task.fields,
            )
            for name, task in self._tasks.items()
        )
        return Problem(
            name=f"{self._name} on {self.machine.name}",
            machine=self.machine,
            tensors=tuple(tensors.values()),
            buffers=tuple(buffers),
            slices=tuple(slices),
            tasks=tasks,
            objective=self._objective,
            sources=(("machine", self._file.sha256),),
        )

    def __repr__(self) -> str:
        counts = f"{len(self._tasks)} tasks, {len(self._data)} buffers"
        return f"<problem builder {self._name} on {self.machine.name}: {counts}>"

    def _tensors(self) -> dict[str, DramTensor]:
        """Return the tensors of all that starts or ends in a DRAM, by name."""
        found: dict[str, DramTensor] = {}
        tiles: dict[str, list[View]] = {}
        for name, home in (*self._starts.items(), *self._ends.items()):
            if self.machine.memories[home.memory].kind is not MemoryKind.DRAM:
                continue
            data = self._data[name]
            tensor = DramTensor(
                index=len(found),
                name=home.tensor,
                kind=home.kind,
                memory=home.memory,
                shape=home.shape,
                item=ITEMS[data.dtype],
            )
            known = found.setdefault(home.tensor, tensor)
            for what in ("kind", "memory", "shape", "item"):
                one, other = getattr(known, what), getattr(tensor, what)
                said = f"{name}: {what} {other} in {home.tensor}, which has {one}"
                _require(one == other, said)
            tiles.setdefault(home.tensor, []).append(View(data, home.start, data.shape))
        for tensor_name, boxes in tiles.items():
            for a, b in combinations(boxes, 2):
                sides = zip(a.start, a.extent, b.start, b.extent, strict=True)
                overlap = all(s < t + n and t < s + m for s, m, t, n in sides)
                names = f"{a.data.name} and {b.data.name}"
                _require(not overlap, f"{names} overlap in the tensor {tensor_name}")
        return found

    def _buffer(self, name: str, index: int, tensors: Mapping[str, DramTensor]) -> Buffer:
        data, start, end = self._data[name], self._starts.get(name), self._ends.get(name)
        partial = any(task.partial and data in task.writes for task in self._tasks.values())
        kind = BufferKind.PARTIAL if partial else BufferKind.INTERMEDIATE
        home, place = start or end, None
        if home is not None:
            kind = home.kind
            if self.machine.memories[home.memory].kind is MemoryKind.DRAM:
                place = Place(tensors[home.tensor].index, home.start)
        return Buffer(
            index=index,
            name=name,
            kind=kind,
            shape=data.shape,
            item=ITEMS[data.dtype],
            starts_in=start and start.memory,
            ends_in=end and end.memory,
            place=place,
        )

    def _fresh(self, given: Any, who: str) -> Data:
        is_written = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 3
        _require(is_written, f"{who}: writes {given!r}, expected (name, shape, dtype)")
        name, shape, dtype = given
        _is_new(name, "data", self._data)
        _require(dtype in ITEMS, f"{name}: dtype {dtype!r}; there are {', '.join(ITEMS)}")
        return Data(name, _extents(shape, name), dtype)

    def _known(self, given: Any, who: str) -> Data:
        name = given.name if isinstance(given, Data) else given
        is_part = isinstance(given, View)
        _require(not is_part, f"{who}: {given!r} is a part; expected the whole of it")
        found = self._data.get(name)
        if found is None or (isinstance(given, Data) and given is not found):
            raise ArgumentError(f"{who}: there is no data {name!r}{_near(name, self._data)}")
        return found

    def _view(self, given: Any, who: str) -> View:
        data = self._known(given.data if isinstance(given, View) else given, who)
        return given if isinstance(given, View) else data[()]

    def _earlier(self, given: Any, who: str) -> str:
        if isinstance(given, Data):
            writers = (name for name, task in self._tasks.items() if given in task.writes)
            writer = next(writers, "")
            _require(writer, f"{who}: after {given.name}, which no task writes")
            return writer
        said = f"{who}: after {given!r}, no such task{_near(given, self._tasks)}"
        _require(given in self._tasks, said)
        return str(given)

    def _per_kind(
        self, given: int | Mapping[str, int], who: str, what: str, least: int
    ) -> tuple[int | None, ...]:
        kinds = [kind.name for kind in self.machine.kinds]
        table = dict.fromkeys(kinds, given) if isinstance(given, int) else given
        said = f"{who}: {what} {given!r}, expected a number or {{kind: number}}"
        _require(isinstance(table, Mapping) and table, said)
        for kind, number in table.items():
            there = f"{self.machine.name} has {', '.join(kinds)}"
            _require(kind in kinds, f"{who}: {what} on {kind!r}; {there}")
            is_enough = type(number) is int and number >= least
            _require(is_enough, f"{who}: {what} {number!r} on {kind}, expected {least} or more")
        return tuple(table.get(kind) for kind in kinds)

    def _memory(self, name: str | None, who: str) -> MemoryIdx:
        if name is None:
            _require(self.machine.drams, f"{who}: {self.machine.name} has no DRAM; name a memory")
            return self.machine.drams[0].index
        known = {memory.name: memory.index for memory in self.machine.memories}
        _require(name in known, f"{who}: no memory {name!r}{_near(name, known)}")
        return known[name]


def _require(holds: object, said: str) -> None:
    if not holds:
        raise ArgumentError(said)


def _is_new(name: Any, what: str, taken: Mapping[str, object]) -> None:
    _require(isinstance(name, str) and name, f"{what} {name!r}: expected a name")
    _require(name not in taken, f"{what} {name}: there is one of this name already")


def _as_list(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | Data | View) else list(given)


def _as_tuple(given: Shape) -> Extents:
    return (given,) if isinstance(given, int) else tuple(given)


def _extents(shape: Shape, who: str) -> Extents:
    extents = _as_tuple(shape)
    _require(extents, f"{who}: a shape without axes; write (1,)")
    for axis, length in enumerate(extents):
        is_length = type(length) is int and length >= 1
        _require(is_length, f"{who}: axis {axis} has {length!r} elements, expected 1 or more")
    return extents


def _near(name: object, known: Iterable[str]) -> str:
    names = tuple(known)
    some = f"; there are {', '.join(names[:8])}" if names else ""
    return near_matches(str(name), names) or some
