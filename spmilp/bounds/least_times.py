"""The least times by which cores and links can have done what they must: see :func:`.paths_of`."""

from spmilp.bounds.cut_tables import Tasks
from spmilp.compiled import part


@part
def until_done(
    some: int, others: int, near: int, away: int, number: int, work: int, shortest: int
) -> int:
    """Return the least T in which ``some`` cores have T - near cycles, ``others`` T - away.

    They have to suffice for ``work`` cycles, and for ``number`` tasks of ``shortest`` each.
    """
    away = max(near, away)
    end = near + -(-work // some)
    if end > away and others > 0:
        end = -(-(work + some * near + others * away) // (some + others))
    later = away - near
    rounds = -(-number // some)
    if others > 0 and rounds * shortest > later:
        # T ends a round of the former, or one of the latter.
        lost, won = -(-later // shortest), later // shortest
        first = max(lost, -(-(number + others * lost) // (some + others)))
        second = max(0, -(-(number - some * won) // (some + others)))
        return max(end, near + min(rounds * shortest, first * shortest, later + second * shortest))
    return max(end, near + rounds * shortest)


@part
def until_arrived(
    t: int, tasks: Tasks, total: int, most: int, begin: int, release: int, shortest: int
) -> int:
    """Return the least T at which all can have come that has to come to a task's memory.

    Some tasks run in it, from ``begin`` on and for ``shortest`` cycles each, and what they write
    need not come: ``most`` each of ``total`` bytes. The rest comes from ``release`` on.
    """
    rate, over = tasks.rate[t], tasks.over[t]
    if total <= 0 or rate <= 0:
        return 0
    low = 0
    high = max(0, release) + -(-total * over // rate)
    while low < high:
        middle = (low + high) // 2
        local = tasks.sharing[t] * max(0, (middle - begin) // shortest)
        rest = max(0, total - local * most)
        if rest == 0 or rest * over <= rate * (middle - release):
            high = middle
        else:
            low = middle + 1
    return low
