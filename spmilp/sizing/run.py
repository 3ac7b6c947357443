"""A whole sweep: what is missing is solved, then plans are handed on to larger machines."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from spmilp.sizing.engine import Engine
from spmilp.sizing.grid import Point
from spmilp.sizing.process import PointRequest
from spmilp.sizing.store import Row, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """How far a sweep is.

    Parameters
    ----------
    done, total
        Points of this step: finished, also before, and all.
    seconds_left
        By the pace so far; ``None`` before there is one.
    step
        What is being done.
    name
        Of the point that was just finished; empty at the beginning.
    """

    done: int
    total: int
    seconds_left: float | None
    step: str
    name: str = ""


Listener = Callable[[News], None]


@dataclass
class Rows:
    """The rows of some points, and how missing ones are made.

    Parameters
    ----------
    on_news
        Called at the beginning of each step and after each point.
    """

    store: Store
    engine: Engine
    on_news: Listener = lambda news: None
    found: dict[str, Row] = field(default_factory=dict)

    def solve(self, points: Sequence[Point], *, again: bool = False) -> None:
        """Solve the points whose rows are not in the folder yet.

        Parameters
        ----------
        again
            Solve them all.
        """
        by_key = {point.key: point for point in points}
        missing = {}
        for key, point in by_key.items():
            row = None if again else self.store.find(key)
            if row is None:
                missing[key] = PointRequest(point=point)
            else:
                self.found[key] = row
        for key, row, files in self._answered(missing, len(by_key), "solving"):
            self.found[key] = row
            self.store.keep(by_key[key], row, files)

    def hand_on(self, points: Sequence[Point]) -> None:
        """Let each point begin with a better plan of a smaller machine, where there is one.

        So more memory, channels or bandwidth never makes a plan worse: the plan of the smaller
        machine is checked on the larger one, and a search begins with it.

        Parameters
        ----------
        points
            Smaller machines before larger ones.
        """
        by_key = {point.key: point for point in points}
        smaller = _smaller(list(by_key.values()))
        for level in _levels(list(by_key), smaller):
            tried: set[tuple[str, str]] = set()
            while starts := dict(self._starts(level, smaller, tried)):
                tried |= set(starts.items())
                requests = {
                    key: PointRequest(point=by_key[key], start=self.store.pair_of(start))
                    for key, start in starts.items()
                }
                for key, row, files in self._answered(requests, len(requests), "handing plans on"):
                    self._keep_if_better(by_key[key], replace(row, handed_on=starts[key]), files)

    def adopt(self, point: Point, larger: Point) -> None:
        """Take the plan of a larger machine for a point on whose machine it is valid, too."""
        start = self.store.pair_of(larger.key)
        request = PointRequest(point=point, start=start, improve=False)
        for key, row, files in self._answered({point.key: request}, 1, "taking a plan over"):
            self.found[key] = replace(row, handed_on=larger.key)
            self.store.keep(point, self.found[key], files)

    def _keep_if_better(self, point: Point, row: Row, files: Mapping[str, bytes]) -> None:
        own = self.found[row.key]
        if row.objective is None or (own.objective is not None and row.objective >= own.objective):
            return
        seconds = (own.seconds or 0.0) + (row.seconds or 0.0)
        better = replace(row, roofline=own.roofline, seconds=seconds)
        self.found[row.key] = better
        self.store.keep(point, better, files)

    def _starts(
        self,
        level: Sequence[str],
        smaller: Mapping[str, Sequence[str]],
        tried: set[tuple[str, str]],
    ) -> Iterator[tuple[str, str]]:
        """Yield points with the point whose better plan they are to begin with."""
        for key in level:
            own = self.found[key].objective
            better = {
                other: value
                for other in smaller[key]
                if (value := self.found[other].objective) is not None
                and (own is None or value < own)
                and (key, other) not in tried
            }
            if better:
                yield key, min(better, key=lambda other: better[other])

    def _answered(
        self, requests: Mapping[str, PointRequest], total: int, step: str
    ) -> Iterator[tuple[str, Row, Mapping[str, bytes]]]:
        """Yield rows as they are finished; each is kept before the next one is told of."""
        if not requests:
            return
        began, before = monotonic(), total - len(requests)
        self.on_news(News(done=before, total=total, seconds_left=None, step=step))
        for count, (key, answer) in enumerate(self.engine.answers(requests), start=1):
            yield key, Row.of(key, answer), answer.files
            left = (monotonic() - began) / count * (len(requests) - count)
            name = requests[key].point.name
            self.on_news(
                News(done=before + count, total=total, seconds_left=left, step=step, name=name)
            )


def _smaller(points: Sequence[Point]) -> dict[str, list[str]]:
    """Return for each point those of machines that have less and nothing more."""
    return {
        point.key: [other.key for other in points if other.is_covered_by(point)] for point in points
    }


def _levels(keys: Sequence[str], smaller: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the points in groups: all that are smaller than one are in earlier groups."""
    level: dict[str, int] = {}
    for key in keys:
        level[key] = 1 + max((level[other] for other in smaller[key]), default=-1)
    groups: list[list[str]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for key, number in level.items():
        groups[number].append(key)
    return groups
