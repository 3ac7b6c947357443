"""Networks in COSMA's setting: where order decides what must leave, and where something must."""

from spmilp.policies.cosma import Network, Operator

FORK = Network(
    name="two ways",
    sizes=(1, 50, 40, 40, 1, 1),
    operators=(
        Operator(name="first", reads=(0,), writes=1),
        Operator(name="second", reads=(0,), writes=2),
        Operator(name="long", reads=(2,), writes=3),
        Operator(name="short", reads=(1,), writes=4),
        Operator(name="last", reads=(3, 4), writes=5),
    ),
    outputs=frozenset({5}),
)
"""50 bytes wait while "long" runs, unless "short" comes first."""

WAITING = Network(
    name="x waits",
    sizes=(10, 30, 20, 20, 5),
    operators=(
        Operator(name="a", reads=(0,), writes=1),
        Operator(name="b", reads=(1,), writes=2),
        Operator(name="c", reads=(2,), writes=3),
        Operator(name="d", reads=(1, 3), writes=4),
    ),
    outputs=frozenset({4}),
)
"""Tensor 1 waits while "c" runs: 30 + 20 + 20 bytes, more than the 55 of the largest operator."""
