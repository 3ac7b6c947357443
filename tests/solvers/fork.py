"""A network in COSMA's setting whose order decides what must leave the scratchpad."""

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
