"""The rows of a sweep: what is missing is solved, then larger machines start from smaller ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic

from spmilp.runs.jobs import Answer, Executor
from spmilp.runs.points import Point
from spmilp.runs.run import Run
from spmilp.runs.store import Store


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
    """The rows of some points by their keys, and how missing ones are made.

    Parameters
    ----------
    on_news
        Called at the beginning of each step and after each point.
    """

    store: Store
    executor: Executor
    on_news: Listener = lambda news: None
    found: dict[str, Run] = field(default_factory=dict)

    def solve(self, points: Sequence[Point], *, again: bool = False) -> None:
        """Solve the points whose rows are not in the folder yet; with ``again``, all."""
        missing = []
        for point in points:
            run = None if again else self.store.find(point.key)
            if run is None:
                missing.append(point)
            else:
                self.found[point.key] = run
        for point, answer in self._answered(missing, len(points), "solving"):
            self._keep(point, answer)

    def warm_start(self, points: Sequence[Point]) -> None:
        """Let each point begin with a better plan of a smaller machine, where there is one.

        So more memory, channels or bandwidth never makes a plan worse: the plan of the smaller
        machine is checked on the larger one, and a search begins with it.

        Parameters
        ----------
        points
            Smaller machines before larger ones.
        """
        by_key = {point.key: point for point in points}
        smaller = {
            key: [other.key for other in points if other.is_covered_by(point)]
            for key, point in by_key.items()
        }
        for level in _levels(smaller):
            tried: set[tuple[str, str]] = set()
            while starts := dict(self._starts(level, smaller, tried)):
                tried |= set(starts.items())
                jobs = [
                    replace(by_key[key], start=self.store.pair_of(start))
                    for key, start in starts.items()
                ]
                for point, answer in self._answered(jobs, len(jobs), "starting from other plans"):
                    own, run = self.found[point.key], answer.run
                    if run.objective is None or (
                        own.objective is not None and run.objective >= own.objective
                    ):
                        continue
                    run = replace(
                        run,
                        roofline=own.roofline,
                        seconds=(own.seconds or 0.0) + (run.seconds or 0.0),
                        warm_start=starts[point.key],
                    )
                    self._keep(point, replace(answer, run=run))

    def adopt(self, point: Point, larger: Point) -> None:
        """Take the plan of a larger machine for a point on whose machine it is valid, too."""
        job = replace(point, start=self.store.pair_of(larger.key), search=False)
        for _, answer in self._answered([job], 1, "taking a plan over"):
            run = replace(answer.run, warm_start=larger.key, seconds=None)
            self._keep(point, replace(answer, run=run))

    def _keep(self, point: Point, answer: Answer) -> None:
        self.found[point.key] = answer.run
        self.store.keep(answer, point.about)

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
        self, points: Sequence[Point], total: int, step: str
    ) -> Iterator[tuple[Point, Answer]]:
        """Yield points with their answers; each is kept before the next one is told of."""
        if not points:
            return
        began, before = monotonic(), total - len(points)
        by_key = {point.key: point for point in points}
        self.on_news(News(done=before, total=total, seconds_left=None, step=step))
        for count, answer in enumerate(self.executor.answers(points), start=1):
            point = by_key[answer.run.key]
            yield point, answer
            left = (monotonic() - began) / count * (len(points) - count)
            self.on_news(
                News(
                    done=before + count, total=total, seconds_left=left, step=step, name=point.name
                )
            )


def _levels(smaller: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the points in groups: all that are smaller than one are in earlier groups."""
    level: dict[str, int] = {}
    for key, others in smaller.items():
        level[key] = 1 + max((level[other] for other in others), default=-1)
    groups: list[list[str]] = [[] for _ in range(1 + max(level.values(), default=-1))]
    for key, number in level.items():
        groups[number].append(key)
    return groups
