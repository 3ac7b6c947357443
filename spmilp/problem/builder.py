"""Problems built by hand, by names: no index, no slice number, no place in a tensor."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, TypeAlias

from spmilp.errors import ArgumentError
from spmilp.formats import near_matches
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.machine.read import MachineFile, as_machine_file
from spmilp.problem.objective import OF_ONE_INFERENCE, Objective, Quantity
from spmilp.problem.problem import (
    Buffer,
    BufferKind,
    DramTensor,
    Place,
    Problem,
    Slice,
    Task,
    Tile,
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
        known = ", ".join(OF_ONE_INFERENCE)
        _require(objective in OF_ONE_INFERENCE, f"objective {objective}: there are {known}")
        self._file = as_machine_file(machine)
        self._name = name
        self._objective = Objective.of(Quantity(objective))
        self._data: dict[str, Data] = {}
        self._buffers: dict[str, Buffer] = {}
        self._tensors: dict[str, DramTensor] = {}
        self._tiles: dict[str, list[View]] = {}
        self._tiles_of: Counter[str] = Counter()
        self._views: dict[View, int] = {}
        self._tasks: dict[str, Task] = {}

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
        home = self._memory(memory, f"{kind} {name}")
        data = self._new_data((name, shape, dtype), f"{kind} {name}")
        place = self._place(data, kind, home, name, data.shape, (0,) * len(data.shape))
        self._add(data, kind, starts_in=home, place=place)
        return data

    def task(
        self,
        name: str,
        *,
        cycles: int | Mapping[str, int],
        reads: Iterable[Data | View] | Data | View = (),
        writes: Written | Iterable[Written] = (),
        scratch: Bytes = 0,
        after: Iterable[str] | str = (),
        in_place: Iterable[tuple[Data | View, str]] = (),
        energy: int | Mapping[str, int] | None = None,
        partial: bool = False,
        operator: str = "",
    ) -> Any:
        """Add a task: one unit of work that runs on one core.

        Parameters
        ----------
        cycles
            How long it runs on every kind of core, launch included; or ``{kind: cycles}`` for the
            kinds that can run it.
        reads
            What must be in the core's memory while it runs: data, or parts of data.
        writes
            ``(name, shape, dtype)`` of what it writes, or several of them.
        scratch
            Bytes that it needs besides.
        after
            Names of tasks that must have ended before it starts, besides those that write what it
            reads.
        in_place
            ``(read, name)`` pairs that may share their bytes: what it writes by this name takes the
            place of what it reads, which must have the same size.
        energy
            Femtojoules, as ``cycles``; left out where unknown.
        partial
            What it writes are partial sums, and shown as such.
        operator
            The operator of which it is a tile. Greedy rules and published policies spread the
            tiles of each operator over cores; a task without one they take for an operator of its
            own, with a single tile, and such tasks may all go to one core.

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
        _require(scratch >= 0, f"{who}: scratch of {scratch} B, expected 0 or more")
        views = [self._view(read, who) for read in _as_list(reads)]
        twice = next((view for n, view in enumerate(views) if view in views[:n]), None)
        _require(twice is None, f"{who}: reads {twice!r} twice")
        one = isinstance(writes, tuple) and len(writes) == 3 and isinstance(writes[0], str)
        wanted: list[Any] = [writes] if one else list(writes)
        written = {data.name: data for data in (self._new_data(each, who) for each in wanted)}
        _require(len(written) == len(wanted), f"{who}: writes something twice")
        numbers = {name: len(self._buffers) + n for n, name in enumerate(written)}
        pairs = []
        for read, into in in_place:
            view = self._view(read, who)
            _require(view in views, f"{who}: in place of {view!r}, which it does not read")
            _require(into in written, f"{who}: in place {into!r}, which it does not write")
            size, room = written[into][()].bytes, view.bytes
            _require(size == room, f"{who}: {into} of {size} B in place of {view!r} of {room} B")
            pairs.append((view, numbers[into]))
        earlier = dict.fromkeys(_as_list(after))
        for other in earlier:
            said = f"{who}: after {other!r}, no such task{_near(other, self._tasks)}"
            _require(other in self._tasks, said)
        cycles_on = self._per_kind(cycles, who, "cycles", 1)
        energy_on = () if energy is None else self._per_kind(energy, who, "energy", 0)
        # Slices have the numbers of views here; they get their own when all buffers are there.
        self._tasks[name] = Task(
            index=len(self._tasks),
            name=name,
            cycles=cycles_on,
            reads=tuple(map(self._number, views)),
            writes=tuple(numbers.values()),
            scratch=scratch,
            in_place=tuple((self._number(view), into) for view, into in pairs),
            after=tuple(self._tasks[other].index for other in earlier),
            energy=energy_on,
            tile=self._tile_of(operator) if operator else None,
        )
        for data in written.values():
            self._add(data, BufferKind.PARTIAL if partial else BufferKind.INTERMEDIATE)
        return next(iter(written.values())) if one else tuple(written.values())

    def output(
        self,
        data: Data,
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
            If the data is another problem's, no task writes it, it is an output already, or the
            tile leaves its tensor, overlaps another one, or is of another type.
        """
        view = self._view(data, "output")
        name, who = view.data.name, f"output {view.data.name}"
        _require(view == view.data[()], f"{who}: {view!r} is a part; expected the whole of it")
        buffer = self._buffers[name]
        _require(buffer.starts_in is None, f"{who}: no task writes it")
        _require(buffer.ends_in is None, f"{who}: is an output already")
        whole, shape = (name, buffer.shape) if tensor is None else tensor
        extents = _extents(shape, who)
        start = (0,) * len(extents) if at is None else _as_tuple(at)
        axes = len(buffer.shape)
        said = f"{who}: {axes} axes at {len(start)} in a tensor of {len(extents)}"
        _require(len(start) == len(extents) == axes, said)
        for axis, (first, length, end) in enumerate(zip(start, buffer.shape, extents, strict=True)):
            said = f"[{first}, {first + length}) along axis {axis} of {whole}, which is [0, {end})"
            _require(0 <= first <= end - length, f"{who}: {said}")
        home = self._memory(memory, who)
        place = self._place(view.data, BufferKind.OUTPUT, home, whole, extents, start)
        self._buffers[name] = replace(buffer, kind=BufferKind.OUTPUT, ends_in=home, place=place)

    def build(self) -> Problem:
        """Return the problem.

        Raises
        ------
        ValueError
            If there is no task, or something is never read and is no output.
        """
        _require(self._tasks, f"{self._name}: has no task")
        read = {view.data.name for view in self._views}
        for buffer in self._buffers.values():
            used = buffer.name in read or buffer.ends_in is not None
            _require(used, f"{buffer.name}: no task reads it, and it is no output")
        # Tensors of outputs come last, and whole buffers before the parts that are read.
        tensors = sorted(self._tensors.values(), key=lambda one: one.kind is BufferKind.OUTPUT)
        new = {tensor.index: index for index, tensor in enumerate(tensors)}
        buffers = [
            replace(one, place=one.place and Place(new[one.place.tensor], one.place.start))
            for one in self._buffers.values()
        ]
        slices = list(map(whole_slice, buffers))
        numbers = []
        for view in self._views:
            parent = self._buffers[view.data.name].index
            numbers.append(parent if view.extent == view.data.shape else len(slices))
            if numbers[-1] == len(slices):
                slices.append(
                    Slice(
                        index=len(slices),
                        buffer=parent,
                        start=view.start,
                        extent=view.extent,
                        bytes=view.bytes,
                    )
                )
        tasks = (
            replace(
                task,
                reads=tuple(numbers[view] for view in task.reads),
                in_place=tuple((numbers[view], into) for view, into in task.in_place),
            )
            for task in self._tasks.values()
        )
        return Problem(
            name=f"{self._name} on {self.machine.name}",
            machine=self.machine,
            tensors=tuple(replace(one, index=index) for index, one in enumerate(tensors)),
            buffers=tuple(buffers),
            slices=tuple(slices),
            tasks=tuple(tasks),
            objective=self._objective,
            sources=(("machine", self._file.sha256),),
        )

    def _tile_of(self, operator: str) -> Tile:
        """Return the next tile of an operator, as one along a single axis."""
        number = self._tiles_of[operator]
        self._tiles_of[operator] += 1
        return Tile(of=operator, box=((number, number + 1),))

    def _new_data(self, given: Any, who: str) -> Data:
        is_written = isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 3
        _require(is_written, f"{who}: writes {given!r}, expected (name, shape, dtype)")
        name, shape, dtype = given
        _is_new(name, "data", self._data)
        _require(dtype in ITEMS, f"{name}: dtype {dtype!r}; there are {', '.join(ITEMS)}")
        return Data(name, _extents(shape, name), dtype)

    def _add(self, data: Data, kind: BufferKind, **home: Any) -> None:
        self._data[data.name] = data
        self._buffers[data.name] = Buffer(
            index=len(self._buffers),
            name=data.name,
            kind=kind,
            shape=data.shape,
            item=ITEMS[data.dtype],
            **home,
        )

    def _place(
        self, data: Data, kind: BufferKind, at: MemoryIdx, name: str, shape: Extents, start: Extents
    ) -> Place | None:
        """Return the place of some data in a tensor of a DRAM, which is added if it is new."""
        if self.machine.memories[at].kind is not MemoryKind.DRAM:
            return None
        made = DramTensor(
            index=len(self._tensors),
            name=name,
            kind=kind,
            memory=at,
            shape=shape,
            item=ITEMS[data.dtype],
        )
        known = self._tensors.setdefault(name, made)
        for what in ("kind", "memory", "shape", "item"):
            one, other = getattr(known, what), getattr(made, what)
            _require(one == other, f"{data.name}: {what} {other} in {name}, which has {one}")
        tile, tiles = View(data, start, data.shape), self._tiles.setdefault(name, [])
        for before in tiles:
            sides = zip(before.start, before.extent, start, data.shape, strict=True)
            overlap = all(s < t + n and t < s + m for s, m, t, n in sides)
            names = f"{before.data.name} and {data.name}"
            _require(not overlap, f"{names} overlap in the tensor {name}")
        tiles.append(tile)
        return Place(known.index, start)

    def _view(self, given: Any, who: str) -> View:
        view = given[()] if isinstance(given, Data) else given
        is_known = isinstance(view, View) and self._data.get(view.data.name) is view.data
        _require(is_known, f"{who}: there is no data {given!r} in this problem")
        return view

    def _number(self, view: View) -> int:
        """Return the number of a view, counted in the order in which they are first read."""
        return self._views.setdefault(view, len(self._views))

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
