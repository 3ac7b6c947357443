"""Settings of the CP-SAT solver: what it may spend, and one switch for each cut and symmetry."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CpSatOptions:
    """Settings beside :class:`~spmilp.solvers.base.SolveOptions`.

    Parameters
    ----------
    addresses_in_model
        Whether the model knows every address (``no_overlap_2d``) rather than only what a packing
        has shown to be needed. The peak is always made small with addresses. ``None``: where
        traffic or energy is to be small and all tasks work in one memory, for there much of a plan
        is its packing.
    retime
        First keep the decisions of the list scheduler's plan, and choose all times anew.
    relax
        Prove with open candidates where the number of residencies limits the model.
    load_relaxation
        First prove with the small relaxation of :mod:`~spmilp.solvers.cpsat.load_relaxation`.
    retention
        Then with that relaxation and what memories keep for later readers.
    round_robin
        With few workers several strategies alternate in proofs, and none looks for solutions.
    neighbourhoods
        Improve the best plan with most of it kept
        (:mod:`~spmilp.solvers.cpsat.neighbourhoods`).
    cores_in_order
        Break the symmetry of memories, with their cores, engines and links, that can be exchanged.
    disjoint_residencies
        In a proof a slice does not lie in one memory twice at one time, unless in place or for its
        address. Plans may, for so many do.
    residencies_are_used
        A residency exists only if something uses it.
    energy_of_cores, energy_of_links
        Work and traffic need time: a row for each kind of core, and each link and engine.
    working_sets
        Running tasks, each with all its bytes, and arriving transfers share a memory.
    known_heads
        Tasks start no earlier and end no later than the critical paths allow.
    literals
        The largest model that is tried.
    residencies
        Of a slice in a memory whose space is short, to begin with.
    most_residencies
        The number up to which that is raised where the proof needs it.
    deterministic_limit
        Limit on the solver's own deterministic time, all models together; ``None`` for none.
    tie_breaks
        Deterministic time for each objective behind the first.
    log
        Print the solver's own log.
    """

    addresses_in_model: bool | None = None
    retime: bool = True
    relax: bool = True
    load_relaxation: bool = True
    retention: bool = True
    round_robin: bool = True
    neighbourhoods: bool = True
    cores_in_order: bool = True
    disjoint_residencies: bool = True
    residencies_are_used: bool = True
    energy_of_cores: bool = True
    energy_of_links: bool = True
    working_sets: bool = True
    known_heads: bool = True
    literals: int = 2_000_000
    residencies: int = 2
    most_residencies: int = 4
    deterministic_limit: float | None = None
    tie_breaks: float = 3.0
    log: bool = False
