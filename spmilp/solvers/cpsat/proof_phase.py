"""The search for proofs: the small relaxations of loads, and the one with open candidates."""

from spmilp.solvers.cpsat.inquiry import Found
from spmilp.solvers.cpsat.load_relaxation.model import LoadRelaxation, can_relax
from spmilp.solvers.cpsat.runs import ROUNDS, Budget, has_time_to_build, prove
from spmilp.solvers.cpsat.state import SearchState

PROOF = Budget(0.95)

AT_FIRST = {False: 0.2, True: 0.3}
"""Shares of the time limit by which the small relaxations end, without and with retention."""

AT_LAST = {False: 0.82, True: PROOF.share}
"""Those when plans have been looked for."""

WITHOUT_LIMIT = 20.0
"""Deterministic time for a small relaxation where nothing else limits it."""

FOLLOWED = 2
"""Solutions of each small relaxation whose pools are tried."""


class ProofPhase:
    """Proves bounds, and says what of its solutions may lead to plans."""

    def __init__(self, state: SearchState) -> None:
        self._state = state
        self._unfinished: set[bool] = set()

    def relax_loads(self) -> list[tuple[int, ...]]:
        """Prove what the small relaxations can; return the pools of their best solutions, last."""
        pools: list[tuple[int, ...]] = []
        for retention, share in AT_FIRST.items():
            found = self._relax_loads(retention, share)
            solutions = [] if found is None else found.solutions[-FOLLOWED:]
            pools += [tuple(run.pool for run in decisions.runs) for decisions in solutions]
        return pools

    def _relax_loads(self, retention: bool, share: float) -> Found | None:
        """Search a small relaxation for anything better than the incumbent."""
        state, settings = self._state, self._state.settings
        wanted = settings.retention if retention else settings.load_relaxation
        if not wanted or not can_relax(state.tables, state.order[0]) or state.is_done:
            return None
        if state.clock.is_over(share):
            return None
        aim = state.aim(state.builder.structure(relaxed=True), 0)
        model = LoadRelaxation(state.tables, aim, retention=retention)
        budget = Budget(share, None if state.clock.is_limited else WITHOUT_LIMIT)
        found = prove(state, model, budget)
        self._unfinished -= {retention}
        if not found.complete:
            self._unfinished |= {retention}
        return found

    def prove(self) -> bool:
        """Search the relaxation for anything better; say whether more candidates may help.

        A solution that is better and uses nothing late would be a plan if it had addresses. Those
        that have none get addresses into the plans' model as into this one, and the search begins
        again. As long as the small relaxations are not through, they are worth more time than this.
        """
        state = self._state
        if self._unfinished and state.clock.is_limited:
            for retention in sorted(self._unfinished):
                self._relax_loads(retention, AT_LAST[retention])
            return False
        for _ in range(ROUNDS):
            structure = state.structure(relaxed=True)
            if not has_time_to_build(state, structure, PROOF):
                return False
            found = prove(state, state.model(structure, 0), PROOF)
            conflict = state.take(found)
            if state.is_done or not found.solutions or not found.complete:
                return False
            late = found.solutions[-1].late
            if late:
                return state.builder.add_candidates(late)
            if conflict is None or not state.learn(conflict):
                return False
        return False
