"""Paths along x and then along y."""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from spmilp.machine.machine import Link, Machine
from spmilp.machine.paths import STAY, Path, ShortestPaths
from spmilp.units import Cycles

Position: TypeAlias = tuple[int, int]


class XyPaths:
    """Paths along x and then along y over the routers that have a position.

    Raises
    ------
    ValueError
        If two routers share a position.
    """

    def __init__(self, machine: Machine) -> None:
        self._position = dict(machine.positions)
        taken = set(self._position.values())
        if len(taken) < len(machine.positions):
            raise ValueError(f"machine {machine.name}: two routers share a position")
        self._columns = _span(x for x, _ in taken)
        self._rows = _span(y for _, y in taken)
        on_grid = [link for link in machine.links if self._lies_on_grid(link)]
        self._step: dict[tuple[Position, Position], Link] = {}
        for link in sorted(on_grid, key=lambda link: (link.latency, link.index)):
            ends = self._position[link.source], self._position[link.target]
            self._step.setdefault(ends, link)
        names = frozenset(memory.name for memory in machine.memories)
        self._access = ShortestPaths(
            (link for link in machine.links if not self._lies_on_grid(link)),
            names | frozenset(self._position),
        )
        self._onto: dict[str, tuple[tuple[str, Path], ...]] = {}
        self._off: dict[str, tuple[tuple[str, Path], ...]] = {}
        self._walked: dict[tuple[int, int, int, int], Path | None] = {}

    def between(self, source: str, target: str) -> Path | None:
        """Return the least path from one memory to another, ``None`` if there is none."""
        beside = self._access.between(source, target)
        candidates: list[tuple[Path, ...]] = [] if beside is None else [(beside,)]
        for first, onto in self._ways_onto_the_grid(source):
            for last, off in self._ways_off_the_grid(target):
                across = self._across(first, last)
                if across is not None:
                    candidates.append((onto, *across, off))
        # Of many candidates few are equally short, and only those need be written out.
        lengths = [_length(parts) for parts in candidates]
        least = min(lengths, default=None)
        shortest = (c for c, length in zip(candidates, lengths, strict=True) if length == least)
        return min((STAY.then(*parts) for parts in shortest), default=None)

    def _ways_onto_the_grid(self, memory: str) -> tuple[tuple[str, Path], ...]:
        if memory not in self._onto:
            routers = (n for n in self._access.reached_from(memory) if n in self._position)
            ways = ((router, self._access.between(memory, router)) for router in routers)
            self._onto[memory] = tuple((router, path) for router, path in ways if path)
        return self._onto[memory]

    def _ways_off_the_grid(self, memory: str) -> tuple[tuple[str, Path], ...]:
        if memory not in self._off:
            routers = (n for n in self._access.reaching(memory) if n in self._position)
            ways = ((router, self._access.between(router, memory)) for router in routers)
            self._off[memory] = tuple((router, path) for router, path in ways if path)
        return self._off[memory]

    def _across(self, first: str, last: str) -> tuple[Path, Path] | None:
        """Walk along x and then along y from one router to another."""
        (x, y), (goal_x, goal_y) = self._position[first], self._position[last]
        along_x = self._along(0, y, x, goal_x)
        along_y = self._along(1, goal_x, y, goal_y)
        return (along_x, along_y) if along_x and along_y else None

    def _along(self, axis: int, line: int, start: int, goal: int) -> Path | None:
        """Walk along one axis: the shorter way, the increasing one when both are equal.

        Parameters
        ----------
        line
            The coordinate on the other axis.
        """
        walk = axis, line, start, goal
        if walk not in self._walked:
            self._walked[walk] = self._walk(*walk)
        return self._walked[walk]

    def _walk(self, axis: int, line: int, start: int, goal: int) -> Path | None:
        first, count = self._rows if axis else self._columns
        ahead = (goal - start) % count
        for steps, direction in sorted([(ahead, 1), ((-ahead) % count, -1)], key=_fewer_steps):
            here, links = start, []
            for _ in range(steps):
                there = first + (here + direction - first) % count
                ends = ((line, here), (line, there)) if axis else ((here, line), (there, line))
                link = self._step.get(ends)
                if link is None:
                    break
                links.append(link)
                here = there
            else:
                latency = sum(link.latency for link in links)
                return Path(latency, len(links), tuple(link.index for link in links))
        return None

    def _lies_on_grid(self, link: Link) -> bool:
        return link.source in self._position and link.target in self._position


def _span(coordinates: Iterable[int]) -> tuple[int, int]:
    """Return the least coordinate and the number of positions up to the greatest."""
    found = list(coordinates)
    return (min(found), max(found) - min(found) + 1) if found else (0, 1)


def _length(parts: Sequence[Path]) -> tuple[Cycles, int]:
    """Return latency and hops of paths one after another."""
    return sum(part.latency for part in parts), sum(part.hops for part in parts)


def _fewer_steps(way: tuple[int, int]) -> tuple[int, int]:
    steps, direction = way
    return steps, -direction
