"""All analyses of one plan."""

from dataclasses import dataclass

from spmilp.analysis.causes import Cause, causes_of
from spmilp.analysis.chain import Chain, critical_chain
from spmilp.analysis.idle import CoreTime, times_of_cores
from spmilp.analysis.phases import Phase, phases_of
from spmilp.analysis.space import Space, double_buffered, in_place_pairs, spaces_of
from spmilp.analysis.subject import Subject
from spmilp.analysis.traffic import Excess, TensorTraffic, excess_of, traffic_of
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem
from spmilp.units import ResidencyIdx


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """Why a plan takes what it takes.

    Parameters
    ----------
    causes
        For each activity, what it waited for, the binding cause first.
    in_place
        ``(operand, result)`` residencies that share their bytes.
    double_buffered
        Residencies that are filled while a task works on another part of their tensor.
    """

    subject: Subject
    causes: tuple[tuple[Cause, ...], ...]
    chain: Chain
    phases: tuple[Phase, ...]
    cores: tuple[CoreTime, ...]
    spaces: tuple[Space, ...]
    in_place: tuple[tuple[ResidencyIdx, ResidencyIdx], ...]
    double_buffered: tuple[ResidencyIdx, ...]
    traffic: tuple[TensorTraffic, ...]
    excess: tuple[Excess, ...]


def analyse(problem: Problem, plan: Plan) -> Analysis:
    """Analyse a plan that the checker has accepted."""
    subject = Subject(problem=problem, plan=plan)
    causes = causes_of(subject)
    chain = critical_chain(subject, causes)
    return Analysis(
        subject=subject,
        causes=causes,
        chain=chain,
        phases=phases_of(subject, chain),
        cores=times_of_cores(subject, causes),
        spaces=spaces_of(subject),
        in_place=in_place_pairs(subject),
        double_buffered=double_buffered(subject),
        traffic=traffic_of(subject),
        excess=excess_of(subject),
    )
