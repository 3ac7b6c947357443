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
    """A box of some data: what a task reads.

    Parameters
    ----------
    start, extent
        Elements along each axis.
    """

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
    return it.

    Parameters
    ----------
    shape
        Elements along each axis, row major.
    dtype
        Data type of an element.
    """

    name: str
    shape: Extents
    dtype: str

    @property
    def bytes(self) -> Bytes:
        """Size in bytes."""
        return prod(self.shape) * ITEMS[self.dtype]

    def __getitem__(self, key: slice | int | tuple[slice | int, ...]) -> View:
        """Return a part: a half-open interval along each axis; axes that are left out are whole.

        Raises
        ------
        ValueError
            If an interval is empty or leaves its axis, or there are more of them than axes.
        """
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) > len(self.shape):
            raise ArgumentError(f"{self.name}: {len(keys)} slices, but {len(self.shape)} axes")
        start, extent = [0] * len(self.shape), list(self.shape)
        for axis, (part, length) in enumerate(zip(keys, self.shape, strict=False)):
            part = slice(part, part + 1) if isinstance(part, int) else part
            if part.step not in (None, 1):
                raise ArgumentError(
                    f"{self.name}: a step of {part.step} along axis {axis}, expected 1"
                )
            first = 0 if part.start is None else part.start
            stop = length if part.stop is None else part.stop
            if not 0 <= first < stop <= length:
                raise ArgumentError(
                    f"{self.name}: [{first}, {stop}) along axis {axis}, which is [0, {length})"
                )
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedTask:
    """A task as it was described, its references by name; other fields are those of a task."""

    reads: tuple[View, ...]
    writes: tuple[Data, ...]
    in_place: tuple[tuple[View, Data], ...]
    after: tuple[str, ...]
    cycles: tuple[int | None, ...]
    energy: tuple[int | None, ...]
    scratch: Bytes
    partial: bool


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
        if objective not in list(Quantity):
            raise ArgumentError(f"objective {objective}: there are {', '.join(Quantity)}")
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
        if scratch < 0:
            raise ArgumentError(f"{who}: scratch of {scratch} B, expected 0 or more")
        twice = next((view for n, view in enumerate(views) if view in views[:n]), None)
        if twice is not None:
            raise ArgumentError(f"{who}: reads {twice!r} twice")
        if len({data.name for data in written}) < len(written):
            raise ArgumentError(f"{who}: writes {written[0].name} twice")
        self._tasks[name] = _NamedTask(
            reads=views,
            writes=written,
            cycles=self._per_kind(cycles, who, "cycles", least=1),
            energy=() if energy is None else self._per_kind(energy, who, "energy", least=0),
            scratch=scratch,
            after=tuple(dict.fromkeys(self._earlier(each, who) for each in _as_list(after))),
            in_place=tuple(self._pair(pair, views, written, who) for pair in in_place),
            partial=partial,
        )
        self._data |= {data.name: data for data in written}
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
        who = f"output {found.name}"
        if found.name in self._starts:
            kind = self._starts[found.name].kind
            raise ArgumentError(f"{who}: no task writes it, it is an {kind}")
        if found.name in self._ends:
            raise ArgumentError(f"{who}: is an output already")
        whole, shape = (found.name, found.shape) if tensor is None else tensor
        extents = _extents(shape, who)
        start = (0,) * len(extents) if at is None else _as_tuple(at)
        if not len(start) == len(extents) == len(found.shape):
            raise ArgumentError(
                f"{who}: {len(found.shape)} axes at {len(start)} in a tensor of {len(extents)}"
            )
        for axis, (first, length, end) in enumerate(zip(start, found.shape, extents, strict=True)):
            if not 0 <= first <= end - length:
                raise ArgumentError(
                    f"{who}: [{first}, {first + length}) along axis {axis} of {whole}, which is "
                    f"[0, {end})"
                )
        home = _Home(BufferKind.OUTPUT, self._memory(memory, who), whole, extents, start)
        self._ends[found.name] = home

    def build(self) -> Problem:
        """Return the problem.

        Raises
        ------
        ValueError
            If there is no task, something is never read and is no output, or tiles of an output
            differ in type or overlap.
        """
        if not self._tasks:
            raise ArgumentError(f"{self._name}: has no task")
        self._everything_is_used()
        tensors = self._tensors()
        numbers = {name: index for index, name in enumerate(self._data)}
        buffers = [self._buffer(name, index, tensors) for name, index in numbers.items()]
        # Whole buffers come first, then each part that is read, once.
        slices = list(map(whole_slice, buffers))
        slice_of = {data[()]: index for index, data in enumerate(self._data.values())}
        for view in (view for task in self._tasks.values() for view in task.reads):
            if view not in slice_of:
                slice_of[view] = len(slices)
                slices.append(
                    Slice(
                        index=len(slices),
                        buffer=numbers[view.data.name],
                        start=view.start,
                        extent=view.extent,
                        bytes=view.bytes,
                    )
                )
        positions = {name: index for index, name in enumerate(self._tasks)}
        tasks = tuple(
            Task(
                index=positions[name],
                name=name,
                cycles=task.cycles,
                reads=tuple(slice_of[view] for view in task.reads),
                writes=tuple(numbers[data.name] for data in task.writes),
                scratch=task.scratch,
                in_place=tuple((slice_of[v], numbers[data.name]) for v, data in task.in_place),
                after=tuple(positions[other] for other in task.after),
                energy=task.energy,
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
        return (
            f"<problem builder {self._name} on {self.machine.name}: {len(self._tasks)} tasks, "
            f"{len(self._data)} buffers>"
        )

    def _everything_is_used(self) -> None:
        read = {view.data.name for task in self._tasks.values() for view in task.reads}
        for name in self._data:
            if name not in read and name not in self._ends:
                start = self._starts.get(name)
                if start is not None:
                    raise ArgumentError(f"{start.kind} {name}: no task reads it")
                raise ArgumentError(f"{name}: no task reads it, and it is no output")

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
                if one != other:
                    raise ArgumentError(f"{name}: {what} {other} in {home.tensor}, which has {one}")
            tiles.setdefault(home.tensor, []).append(View(data, home.start, data.shape))
        for tensor_name, boxes in tiles.items():
            for a, b in combinations(boxes, 2):
                sides = zip(a.start, a.extent, b.start, b.extent, strict=True)
                if all(s < t + n and t < s + m for s, m, t, n in sides):
                    names = f"{a.data.name} and {b.data.name}"
                    raise ArgumentError(f"{names} overlap in the tensor {tensor_name}")
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
        if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 3:
            raise ArgumentError(f"{who}: writes {given!r}, expected (name, shape, dtype)")
        name, shape, dtype = given
        _is_new(name, "data", self._data)
        if dtype not in ITEMS:
            raise ArgumentError(f"{name}: dtype {dtype!r}; there are {', '.join(ITEMS)}")
        return Data(name, _extents(shape, name), dtype)

    def _known(self, given: Any, who: str) -> Data:
        name = given.name if isinstance(given, Data) else given
        if isinstance(given, View):
            raise ArgumentError(f"{who}: {given!r} is a part; expected the whole of it")
        found = self._data.get(name) if isinstance(name, str) else None
        if found is None or (isinstance(given, Data) and given is not found):
            raise ArgumentError(f"{who}: there is no data {name!r}{_near(name, self._data)}")
        return found

    def _view(self, given: Any, who: str) -> View:
        if isinstance(given, View):
            self._known(given.data, who)
            return given
        return self._known(given, who)[()]

    def _earlier(self, given: Any, who: str) -> str:
        if isinstance(given, Data):
            self._known(given, who)
            writers = [name for name, task in self._tasks.items() if given in task.writes]
            if not writers:
                raise ArgumentError(f"{who}: after {given.name}, which no task writes")
            return writers[0]
        if given not in self._tasks:
            raise ArgumentError(f"{who}: after {given!r}, no such task{_near(given, self._tasks)}")
        return str(given)

    def _pair(
        self, pair: Any, views: Sequence[View], written: Sequence[Data], who: str
    ) -> tuple[View, Data]:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise ArgumentError(f"{who}: in_place {pair!r}, expected (read, written)")
        view, name = self._view(pair[0], who), pair[1]
        data = next((each for each in written if each.name == name), None)
        if view not in views:
            raise ArgumentError(f"{who}: in place of {view!r}, which it does not read")
        if data is None:
            raise ArgumentError(f"{who}: in place {name!r}, which it does not write")
        if view.bytes != data.bytes:
            raise ArgumentError(
                f"{who}: {name} of {data.bytes} B in place of {view!r} of {view.bytes} B"
            )
        return view, data

    def _per_kind(
        self, given: int | Mapping[str, int], who: str, what: str, *, least: int
    ) -> tuple[int | None, ...]:
        kinds = [kind.name for kind in self.machine.kinds]
        table = dict.fromkeys(kinds, given) if isinstance(given, int) else given
        if not isinstance(table, Mapping) or not table:
            raise ArgumentError(f"{who}: {what} {given!r}, expected a number or {{kind: number}}")
        for kind, number in table.items():
            if kind not in kinds:
                raise ArgumentError(
                    f"{who}: {what} on {kind!r}; {self.machine.name} has {', '.join(kinds)}"
                )
            if isinstance(number, bool) or not isinstance(number, int) or number < least:
                raise ArgumentError(f"{who}: {what} {number!r} on {kind}, expected {least} or more")
        return tuple(table.get(kind) for kind in kinds)

    def _memory(self, name: str | None, who: str) -> MemoryIdx:
        if name is None and self.machine.drams:
            return self.machine.drams[0].index
        if name is None:
            raise ArgumentError(f"{who}: {self.machine.name} has no DRAM; name a memory")
        known = {memory.name: memory.index for memory in self.machine.memories}
        if name not in known:
            raise ArgumentError(f"{who}: no memory {name!r}{_near(name, known)}")
        return known[name]


def _is_new(name: Any, what: str, taken: Mapping[str, object]) -> None:
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"{what} {name!r}: expected a name")
    if name in taken:
        raise ArgumentError(f"{what} {name}: there is one of this name already")


def _as_list(given: Any) -> list[Any]:
    return [given] if isinstance(given, str | Data | View) else list(given)


def _as_tuple(given: Shape) -> Extents:
    return (given,) if isinstance(given, int) else tuple(given)


def _extents(shape: Shape, who: str) -> Extents:
    extents = _as_tuple(shape)
    for axis, length in enumerate(extents):
        if isinstance(length, bool) or not isinstance(length, int) or length < 1:
            raise ArgumentError(f"{who}: axis {axis} has {length!r} elements, expected 1 or more")
    if not extents:
        raise ArgumentError(f"{who}: a shape without axes; write (1,)")
    return extents


def _near(name: object, known: Iterable[str]) -> str:
    names = tuple(known)
    some = f"; there are {', '.join(names[:8])}" if names else ""
    return near_matches(str(name), names) or some
