"""The subject of an export: a plan, its problem, its origin and, where known, its network."""

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from spmilp.commands.build import build_commands
from spmilp.commands.commands import CommandLists, StreamCommands
from spmilp.commands.loop import build_stream_commands
from spmilp.export.names import comment
from spmilp.files import sha256_of
from spmilp.frontend.graph import Network
from spmilp.machine.controllers import StridedCopy
from spmilp.plan.file import plan_bytes
from spmilp.plan.memory import layout_in_memory
from spmilp.plan.plan import Plan, Residency, Transfer
from spmilp.problem.file import problem_sha256
from spmilp.problem.problem import Problem
from spmilp.problem.strides import strided_copy
from spmilp.units import CoreIdx, MemoryIdx
from spmilp.version import __version__

TOOL = f"spmilp {__version__}"

UNKNOWN = "0" * 64
"""The SHA-256 of a file that the problem does not name."""

_OF_VALUES = ("model_sha256", "problem_sha256", "plan_sha256")
"""The hashes that another value of a weight changes."""

Title: TypeAlias = tuple[str, str]
"""Name and version of a format."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A plan, its problem and its origin.

    ``network`` is ``None`` without a model; names of C objects begin with ``prefix``.
    """

    problem: Problem
    plan: Plan
    network: Network | None = None
    prefix: str = "spmilp"

    @cached_property
    def lists(self) -> CommandLists:
        """Command lists for firmware; a ``TooManyEventsError`` if there are too few events.

        Of a stream these are the lists before its loop.
        """
        if self.loop is not None:
            return self.loop.prologue
        return build_commands(self.problem, self.plan)

    @cached_property
    def loop(self) -> StreamCommands | None:
        """The loop of a stream; the same error."""
        if self.plan.stream is None:
            return None
        return build_stream_commands(self.problem, self.plan)

    @cached_property
    def has_commands(self) -> tuple[bool, ...]:
        """Say of each list whether there is anything to do in it."""
        bodies = ((),) * len(self.lists.lists) if self.loop is None else self.loop.body
        both = zip(self.lists.lists, bodies, strict=True)
        return tuple(bool(one.commands or body) for one, body in both)

    @property
    def running_cores(self) -> list[CoreIdx]:
        """The cores whose lists are not empty."""
        return [
            one.core for one, has in zip(self.lists.cores, self.has_commands, strict=False) if has
        ]

    @cached_property
    def origin(self) -> dict[str, str]:
        """What an export was made from: equal plans have equal origins, whenever they are made.

        The plan's hash is that of the file that spmilp writes for it.
        """
        problem, plan = self.problem, self.plan
        sources, first = dict(problem.sources), problem.objective.first
        return {
            "tool": TOOL,
            "network": comment(problem.name.removesuffix(f" on {problem.machine.name}")),
            "machine": comment(problem.machine.name),
            "model_sha256": sources.get("model") or UNKNOWN,
            "machine_sha256": sources.get("machine") or UNKNOWN,
            "problem_sha256": problem_sha256(problem),
            "plan_sha256": sha256_of(plan_bytes(plan, problem)),
            "plan": f"{first.value} {plan.claim.of(first)}, bound {plan.claim.bound}",
        }

    def head(self, title: Title, *, has_values: bool = True) -> list[str]:
        """Return ``key: value`` for the head of a file of a format.

        A file that holds no values leaves out the hashes that they change: it stays as it is when
        only weights change.
        """
        kept = (each for each in self.origin.items() if has_values or each[0] not in _OF_VALUES)
        return [f"format: {' '.join(title)}", *(f"{key}: {value}" for key, value in kept)]

    def fields(self, title: Title) -> dict[str, str]:
        """Return the same as fields of a JSON object."""
        return {"format": title[0], "format_version": title[1], **self.origin}

    def name(self, residency: Residency) -> str:
        """Return the name of the buffer that lies in a residency."""
        if residency.slice is None:
            return "scratch"
        return self.problem.buffers[self.problem.slices[residency.slice].buffer].name

    def copies(self, move: Transfer) -> list[tuple[MemoryIdx, MemoryIdx, StridedCopy]]:
        """Return what goes to each destination of a transfer: both memories, and its bytes."""
        problem, plan = self.problem, self.plan
        part, found = problem.slices[move.slice], []
        item = problem.buffers[part.buffer].item
        source = layout_in_memory(problem, plan, move.slice, move.source)
        for end in move.destinations:
            target = layout_in_memory(problem, plan, move.slice, end)
            copy = strided_copy(part.extent, item, source, target)
            memories = plan.residencies[move.source].memory, plan.residencies[end].memory
            found.append((*memories, copy))
        return found
