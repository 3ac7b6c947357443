"""What directed graphs lead to, and how much they can carry."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def graph_of(edges: Iterable[tuple[Node, Node]]) -> dict[Node, list[Node]]:
    """Return, for each node where edges begin, the nodes where they end."""
    graph: dict[Node, list[Node]] = {}
    for source, target in edges:
        graph.setdefault(source, []).append(target)
    return graph


def reached(graph: Mapping[Node, Iterable[Node]], *starts: Node) -> set[Node]:
    """Return the nodes where paths of one edge or more end that begin at one of ``starts``."""
    found: set[Node] = set()
    waiting = [*starts]
    while waiting:
        new = set(graph.get(waiting.pop(), ())) - found
        found |= new
        waiting.extend(new)
    return found


def least_cut(
    capacities: Iterable[tuple[Node, Node, Fraction]], begins: Collection[Node], ends: set[Node]
) -> Fraction:
    """Return the capacity of a least cut between two sets of nodes that share none.

    It is the greatest flow, which shortest augmenting paths find (J. Edmonds, R. M. Karp,
    "Theoretical improvements in algorithmic efficiency for network flow problems", Journal of the
    ACM 19, 1972).

    Parameters
    ----------
    capacities
        Edges: source, target and what they carry.
    """
    free: dict[Node, dict[Node, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for source, target, capacity in capacities:
        free[source][target] += capacity
    flow = Fraction(0)
    while True:
        came_from: dict[Node, Node | None] = dict.fromkeys(begins)
        for node in (waiting := [*begins]):
            new = [n for n, rest in free[node].items() if rest and n not in came_from]
            came_from.update(dict.fromkeys(new, node))
            waiting.extend(new)
        there = next((node for node in waiting if node in ends), None)
        if there is None:
            return flow
        path = []
        while (here := came_from[there]) is not None:
            path.append((here, there))
            there = here
        more = min(free[here][there] for here, there in path)
        for here, there in path:
            free[here][there] -= more
            free[there][here] += more
        flow += more
