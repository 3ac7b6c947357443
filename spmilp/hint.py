"""A plan from before as a hint: read, and made one of the problem or the network at hand."""

from dataclasses import dataclass, replace
from pathlib import Path

from spmilp.bounds.best import fast_bound
from spmilp.checker.check import check
from spmilp.errors import FileError, NoPlanError, SpmilpError
from spmilp.handing_on import carried_over, on_machine, why_unlike
from spmilp.lowering.limits import groups_that_do_not_fit
from spmilp.lowering.tiling import Tilings
from spmilp.machine.read import MachineFile
from spmilp.plan.plan import Plan
from spmilp.plan.read import open_pair, read_plan
from spmilp.plan.write import PLAN_FILE, PROBLEM_FILE
from spmilp.problem.pins import NO_PINS
from spmilp.problem.problem import Problem
from spmilp.problem.write import problem_sha256
from spmilp.result import Result
from spmilp.tile_selection.first_choice import NetworkOnMachine
from spmilp.tile_selection.given_tiles import tilings_of
from spmilp.tile_selection.tiled_problem import TiledProblem


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hint:
    """A plan that is known from before.

    Parameters
    ----------
    name
        What errors call it.
    problem
        The one that it was made for; ``None`` where it comes without one.
    """

    name: str
    plan: Plan
    problem: Problem | None = None

    def plan_of(self, problem: Problem) -> Plan:
        """Return it as a plan of this problem, of which only machine and objective may differ.

        Raises
        ------
        FileError
            If it is not one that the checker accepts.
        """
        own = problem if self.problem is None else self.problem
        expected = self.plan.problem_sha256
        if self.problem is None and expected and expected != problem_sha256(problem):
            raise FileError(
                f"{self.name}: the plan was made for another problem than {problem.name}"
            )
        reason = why_unlike(own, problem)
        if reason:
            raise FileError(f"{self.name}: no plan of {problem.name}: {reason}")
        self._require_valid(own)
        found = carried_over(problem, self.plan, fast_bound(problem))
        if found is None:
            raise FileError(
                f"{self.name}: the plan does not hold on {problem.machine.name}, nor does its "
                "order with other times"
            )
        return found

    def _require_valid(self, problem: Problem) -> None:
        for broken in check(problem, self.plan)[:1]:
            raise FileError(
                f"{self.name}: the checker rejects this plan: {broken.rule}: {broken.message}"
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HintedTiles:
    """What a hint says of a network.

    Parameters
    ----------
    tilings
        Those of its problem; ``None`` where they do not fit this machine.
    tiled
        Its problem and its plan; ``None`` where the plan cannot be used here, for this ``reason``.
    """

    tilings: Tilings | None
    tiled: TiledProblem | None
    reason: str = ""


def read_hint(given: str | Path | Plan | Result) -> Hint:
    """Read a plan, with the ``problem.json`` beside it if there is one.

    Raises
    ------
    FileError
        If a file cannot be read, or the two do not belong together.
    NoPlanError
        If a result has no plan.
    """
    if isinstance(given, Plan):
        return Hint(name="hint", plan=given)
    if isinstance(given, Result):
        if given.plan is None:
            raise NoPlanError(f"hint: {given.reason}")
        return Hint(name="hint", plan=given.plan, problem=given.problem)
    path = Path(given)
    file = path / PLAN_FILE if path.is_dir() else path
    if file.with_name(PROBLEM_FILE).exists() or path.is_dir():
        problem, plan = open_pair(path)
        return Hint(name=str(file), plan=plan, problem=problem)
    return Hint(name=str(file), plan=read_plan(file))


def tiles_of(hint: Hint, subject: NetworkOnMachine, target: MachineFile) -> HintedTiles:
    """Return the tilings of a hint, and its plan where that holds on this machine, too.

    Raises
    ------
    FileError
        If it is of another model, or the checker rejects the plan for its own problem.
    """
    problem = hint.problem
    if problem is None:
        raise FileError(
            f"{hint.name}: the tiles of a plan are in its problem: put problem.json beside it"
        )
    model = dict(problem.sources).get("model", "")
    if model != subject.network.sha256:
        raise FileError(
            f"{hint.name}: the plan was made for another model: its problem names {model[:12]}, "
            f"and this one is {subject.network.sha256[:12]}"
        )
    hint.plan_of(problem)
    try:
        tilings = tilings_of(problem, subject.network)
    except SpmilpError as error:
        raise FileError(
            f"{hint.name}: not of this model with these sizes: {error}; give the sizes that it was "
            "made for (--dim), or leave it out if a version made it that fused operators otherwise"
        ) from error
    here = None if groups_that_do_not_fit(subject.lower(tilings)) else tilings
    if problem.machine.kinds != target.machine.kinds:
        reason = f"its cores are not those of {target.machine.name}"
        return HintedTiles(tilings=here, tiled=None, reason=f"{hint.name}: {reason}")
    own = replace(subject, machine=problem.machine).lower(tilings)
    reason = why_unlike(own, problem)
    if reason:
        reason = f"not what this version makes of its tiles: {reason}"
        return HintedTiles(tilings=here, tiled=None, reason=f"{hint.name}: {reason}")
    try:
        moved = on_machine(problem, target)
        moved = replace(moved, objective=subject.objective, pins=NO_PINS)
        plan = hint.plan_of(moved)
    except (FileError, ValueError) as error:
        return HintedTiles(tilings=here, tiled=None, reason=str(error))
    return HintedTiles(tilings=here, tiled=TiledProblem(problem=moved, known=plan))
