"""Options of the choice of tile sizes, and numbers that stand for judgement.

Where a number was measured, ``benchmarks/notes/tiles.md`` says how and on what, unless it is stated
here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from spmilp.units import Cycles


class Tiles(StrEnum):
    """By a first estimate, by a search that evaluates tilings by schedules, or as SMAUG does."""

    FIRST = "first"
    SEARCH = "search"
    SMAUG = "smaug"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Limits and thresholds of the search.

    Parameters
    ----------
    tasks, tasks_within_time
        Tasks of all problems that are evaluated together, each once for each rule, and where there
        is a limit of time besides: then the clock ends most searches (13,071 to 12,330 on DS-CNN).
    tasks_of_one
        Of a problem that is evaluated: more take minutes, and gigabytes.
    soon_compared
        Groups that differ from each other: the candidates of so many are compared as soon as a plan
        without comparing could be made, in about a second.
    share_for_all_cores
        Of the time that is left, for a plan of tiles for all cores that nothing is compared with.
    share
        Of the time limit, for the search that goes before the solver.
    share_at_most
        Of the time limit, by which tile sizes are chosen, however long all before has taken.
    schedules_left
        For so many more, of those that take as long as the last one, there is to be time where
        another rule is asked about the same tilings: plans are yet to be made of the best one.
    share_of_one
        Of these where a stream is asked for, for tiles of one inference.
    overlaps, least_share, most_share
        Times that inferences are overlapped once tiles for a stream are chosen, and the least and
        most of the time limit for that.
    share_of_small
        Of what is left then, for a problem that can be decided as a whole, if one was among them.
    evaluations, at_first
        Of tiles for a stream: those are left out of which so many have no time, and those of one
        inference do not come first.
    share_for_room
        Of the time limit, by which schedules that leave memories more room are made.
    large, longer
        Tasks from which on, where schedules with open addresses are soon justified, steps of
        large-neighbourhood search gain little, and how many times as long the search takes then.
    rules
        Rules that are asked behind the first problem, those with the best schedules so far.
    promising
        Schedules that take more than so many times as long as the best one are given up: none of
        1,800 schedules of 400 tilings became the best.
    worth_opening
        Those that take at most so many times as long as that of the best plan are justified; where
        that takes long, only those that are shorter.
    seconds_to_open
        A justification that takes less is *soon* made.
    times_as_long, least_seconds
        Schedules that take so many times as long to make as the best one are given up, but none
        within so many seconds: the search after this one would have few steps for such plans.
    """

    tasks: int = 120_000
    tasks_within_time: int = 2_000_000
    tasks_of_one: int = 120_000
    soon_compared: int = 30
    share_for_all_cores: float = 0.5
    share: float = 0.4
    share_at_most: float = 0.55
    share_of_one: float = 0.5
    overlaps: int = 60
    least_share: float = 0.15
    most_share: float = 0.45
    share_of_small: float = 0.5
    evaluations: int = 6
    at_first: int = 20
    share_for_room: float = 0.8
    schedules_left: float = 4.0
    large: int = 1_000
    longer: float = 1.4
    rules: int = 2
    promising: float = 1.1
    worth_opening: float = 1.1
    seconds_to_open: float = 2.0
    times_as_long: float = 5.0
    least_seconds: float = 1.0


SEARCH = SearchSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class BandSettings:
    """How runs of groups whose results do not fit are cut into bands.

    Parameters
    ----------
    shares
        Parts of all scratchpads beyond which waiting results are fused.
    room
        Parts of what weights leave of the scratchpads that line buffers may take.
    more
        Times as many bands may be made so that all are of one height.
    more_work
        Times the least cycles of all tiles that those along an axis of bands may take.
    least_width
        Elements of a tile along the axis on which the cores share a band.
    working_set
        Of a core's memory, so that the next tile's data can come during a task.
    """

    shares: tuple[float, ...] = (0.5, 1.0)
    room: tuple[float, ...] = (0.72, 0.5)
    more: float = 1.35
    more_work: float = 1.05
    least_width: int = 8
    working_set: float = 0.45


BANDS = BandSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class TileOptions:
    """How tile sizes are chosen.

    Parameters
    ----------
    tasks
        Tasks of all problems that are evaluated, together, once for each rule that evaluates them;
        ``None`` for the usual number, which is larger where a clock ends the search.
    problems
        So many are evaluated at most; ``None`` without limit.
    justifies
        Whether schedules may be justified: not for the plans of solvers that do no such thing.
    on_better
        Called with each better value of the objective and the tasks of its problem.
    period
        For a stream whose period need not be shorter; ``None`` for one inference.
    """

    how: Tiles = Tiles.FIRST
    tasks: int | None = None
    problems: int | None = None
    justifies: bool = True
    on_better: Callable[[int, int], None] = lambda value, tasks: None
    period: Cycles | None = None
