"""The critical chain: from the last end back through what each start waited for."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from spmilp.analysis.causes import Cause
from spmilp.analysis.subject import Part, Subject
from spmilp.commands.order import Activity
from spmilp.units import Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """An activity of the critical chain.

    Parameters
    ----------
    cause
        What it waited for, which is the activity of the link before; ``None`` for the first.
    unused
        Cycles between the end of that and its start, in which nothing kept it waiting: a plan that
        starts it earlier is valid as far as this activity goes.
    """

    activity: Activity
    start: Cycles
    end: Cycles
    part: Part
    cause: Cause | None
    unused: Cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The critical chain, first activity first; links and unused cycles fill the makespan.

    To end earlier, a plan must break it: each link by shortening the activity or by removing what
    it waits for.
    """

    links: tuple[ChainLink, ...]

    def cycles(self) -> dict[Part, Cycles]:
        """Return the cycles of the makespan that each part takes; they add up to it."""
        found: Counter[Part] = Counter()
        for link in self.links:
            found[link.part] += link.end - link.start
            found[Part.UNUSED] += link.unused
        return {part: found[part] for part in Part}


def critical_chain(subject: Subject, causes: Sequence[Sequence[Cause]]) -> Chain:
    """Return the critical chain of a plan; of several that end last, that of the least index."""
    if not subject.ends:
        return Chain(links=())
    activity: Activity | None = max(
        range(len(subject.ends)), key=lambda each: (subject.ends[each], -each)
    )
    links = []
    while activity is not None:
        cause = causes[activity][0] if causes[activity] else None
        start = subject.starts[activity]
        links.append(
            ChainLink(
                activity=activity,
                start=start,
                end=subject.ends[activity],
                part=subject.parts[activity],
                cause=cause,
                unused=start if cause is None else start - cause.until,
            )
        )
        activity = None if cause is None else cause.activity
    return Chain(links=tuple(reversed(links)))
