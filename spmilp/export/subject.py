"""The subject of an export: a plan, its problem, its origin and, where known, its network."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

from spmilp.commands.build import build_commands
from spmilp.commands.commands import CommandLists
from spmilp.explaining.chain import AnalysedPlan
from spmilp.export.names import comment
from spmilp.files import sha256_of
from spmilp.frontend.graph import Network
from spmilp.plan.file import plan_text
from spmilp.plan.measures import claimed
from spmilp.plan.plan import Plan, Residency
from spmilp.problem.file import problem_sha256
from spmilp.problem.problem import Problem
from spmilp.problem.strides import footprint, layout_at_place
from spmilp.units import Bytes, MemoryIdx
from spmilp.version import __version__

SCRATCH = "scratch"

UNKNOWN = "0" * 64
"""The SHA-256 of a file that the problem does not name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """The origin of an export; equal plans give equal stamps, whenever they are made.

    Parameters
    ----------
    tool
        Program and version.
    network, machine_name
        Their names, as they may stand in a comment.
    model, machine, problem, plan
        SHA-256 of the files, in lower-case hex; zeros where the problem does not name one.
    status
        The claimed quantity and its bound.
    """

    tool: str
    network: str
    machine_name: str
    model: str
    machine: str
    problem: str
    plan: str
    status: str

    def lines(self, name: str, version: str) -> tuple[str, ...]:
        """Return ``key: value`` for the head of a file of format ``name``."""
        return (
            f"format: {name} {version}",
            f"tool: {self.tool}",
            f"network: {self.network}",
            f"machine: {self.machine_name}",
            f"model_sha256: {self.model}",
            f"machine_sha256: {self.machine}",
            f"problem_sha256: {self.problem}",
            f"plan_sha256: {self.plan}",
            f"plan: {self.status}",
        )

    def lines_of_tables(self, name: str, version: str) -> tuple[str, ...]:
        """Return the same without the hashes that another value of a weight changes.

        Files that hold no values stay as they are when only weights change.
        """
        changing = ("model_sha256", "problem_sha256", "plan_sha256")
        return tuple(each for each in self.lines(name, version) if not each.startswith(changing))

    def fields(self, name: str, version: str) -> dict[str, str]:
        """Return the same as fields of a JSON object."""
        pairs = [line.partition(": ") for line in self.lines(name, version)[1:]]
        return {
            "format": name,
            "format_version": version,
            **{key: value for key, _, value in pairs},
        }


def stamp_of(problem: Problem, plan: Plan) -> Stamp:
    """Return the stamp of a plan; its hash is that of the file that spmilp writes for it."""
    sources = dict(problem.sources)
    first = problem.objective.first
    value = claimed(plan.claim).of(first)
    return Stamp(
        tool=f"spmilp {__version__}",
        network=comment(problem.name.removesuffix(f" on {problem.machine.name}")),
        machine_name=comment(problem.machine.name),
        model=sources.get("model") or UNKNOWN,
        machine=sources.get("machine") or UNKNOWN,
        problem=problem_sha256(problem),
        plan=sha256_of(plan_text(plan, problem).encode()),
        status=f"{first.value} {value}, bound {plan.claim.bound}",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Subject:
    """A plan, its problem and its origin.

    Parameters
    ----------
    network
        The network that the tasks compute; ``None`` without a model.
    model
        The bytes of the model's file; ``None`` without a model.
    prefix
        Beginning of the names of C objects; an identifier of C.
    controllers
        ``(pattern of engine names, controller)`` in place of the machine's; the last one that
        fits counts.
    """

    problem: Problem
    plan: Plan
    stamp: Stamp
    network: Network | None = None
    model: bytes | None = None
    prefix: str = "spmilp"
    controllers: tuple[tuple[str, str], ...] = ()

    @cached_property
    def analysed(self) -> AnalysedPlan:
        """The plan as analyses see it."""
        return AnalysedPlan(problem=self.problem, plan=self.plan)

    @cached_property
    def lists(self) -> CommandLists:
        """Command lists for firmware.

        Raises
        ------
        TooManyEventsError
            If the machine has too few events.
        """
        return build_commands(self.problem, self.plan, self.analysed.before)

    def name(self, residency: Residency) -> str:
        """Return the name of the buffer that lies in a residency."""
        if residency.slice is None:
            return SCRATCH
        return self.problem.buffers[self.problem.slices[residency.slice].buffer].name

    def kind(self, residency: Residency) -> str:
        """Return the kind of the buffer that lies in a residency."""
        if residency.slice is None:
            return SCRATCH
        return self.problem.buffers[self.problem.slices[residency.slice].buffer].kind.value

    def is_at_place(self, residency: Residency) -> bool:
        """Say whether a residency lies in a DRAM tensor, at the tensor's strides."""
        if residency.slice is None:
            return False
        place = self.problem.buffers[self.problem.slices[residency.slice].buffer].place
        return place is not None and self.problem.tensors[place.tensor].memory == residency.memory

    def packed_residencies(self) -> dict[MemoryIdx, list[Residency]]:
        """Return for each memory in which something lies packed what that is."""
        packed: defaultdict[MemoryIdx, list[Residency]] = defaultdict(list)
        for residency in self.plan.residencies:
            if not self.is_at_place(residency):
                packed[residency.memory].append(residency)
        return dict(sorted(packed.items()))

    def span(self, residency: Residency) -> Bytes:
        """Return the bytes from a residency's first to the end of its last one."""
        if residency.slice is None or not self.is_at_place(residency):
            return residency.bytes
        part = self.problem.slices[residency.slice]
        item = self.problem.buffers[part.buffer].item
        return footprint(part.extent, item, layout_at_place(self.problem, residency.slice))

    def used(self) -> list[Bytes]:
        """Return for each memory the end of the highest byte that the plan touches."""
        ends = [0] * len(self.problem.machine.memories)
        for residency in self.plan.residencies:
            ends[residency.memory] = max(
                ends[residency.memory], residency.offset + self.span(residency)
            )
        for tensor, address in zip(self.problem.tensors, self.plan.tensors, strict=True):
            ends[tensor.memory] = max(ends[tensor.memory], address + tensor.bytes)
        return ends
