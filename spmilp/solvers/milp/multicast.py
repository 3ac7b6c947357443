"""Transfers with several destinations.

The transfer belongs to the candidate in the lowest memory among its destinations, the *root*; the
other destinations are its *members*. It lasts ``set-up + greatest latency + cycles of moving``, and
holds one channel, and each link of the union of the routes once. Only routes of one rate are
joined: where an engine has others, the structure is marked as restricted.
"""

from collections import defaultdict

from spmilp.solvers.formulation.candidates import CandidateResidency
from spmilp.solvers.milp.constraints import own_cycles
from spmilp.solvers.milp.program import Linear, total
from spmilp.solvers.milp.structure import MulticastOption
from spmilp.solvers.milp.variables import CandidateVars, Variables, name_of


def add_multicasts(variables: Variables) -> None:
    """Tie members to their roots, in time and on the links."""
    together: dict[tuple[CandidateResidency, int], list[Linear]] = defaultdict(list)
    for key, candidate in variables.candidates.items():
        for member, joins in candidate.multicasts.items():
            _tie(variables, candidate, member, joins)
            together[member.root, key.memory].append(joins)
    for some in together.values():
        if len(some) > 1:
            variables.program.at_most(total(some), 1)
    _hold_the_links_of_all_routes(variables)


def _tie(
    variables: Variables, candidate: CandidateVars, member: MulticastOption, joins: Linear
) -> None:
    """A member is there from the start of the transfer, and valid from its end."""
    program, root = variables.program, variables.candidates[member.root]
    program.at_most(joins, total(found for _, found in variables.fills_of_root(member)))
    program.at_most(candidate.start, root.start, 1 - joins)
    program.at_least(candidate.valid, root.valid, 1 - joins)
    longer = max(0, member.own.latency - member.option.latency)
    program.at_least(root.valid, root.start + own_cycles(root) + longer, 1 - joins)


def _hold_the_links_of_all_routes(variables: Variables) -> None:
    for candidate in variables.candidates.values():
        for member, joins in candidate.multicasts.items():
            held = variables.extra_links.setdefault(member.root, {})
            for link in member.own.links:
                if link in member.option.links:
                    continue
                key = link, member.option.rate
                if key not in held:
                    held[key] = variables.program.binary(f"{name_of(member.root)}_also{link}")
                variables.program.at_least(held[key], joins)
