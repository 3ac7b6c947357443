"""The end of the line: a problem, a plan, the checker's verdict, and what can be asked of them."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spmilp import quantities
from spmilp.checker.violation import Violation
from spmilp.errors import FileError, NoPlanError, SpmilpError
from spmilp.explaining.streams import (
    network_data,
    network_rows,
    stream_data,
    stream_rows,
    why_period,
)
from spmilp.explaining.text import network_name
from spmilp.machine.machine import MemoryKind
from spmilp.plan import frames
from spmilp.plan.file import open_pair, write_pair
from spmilp.plan.measures import compulsory_dram_traffic
from spmilp.plan.plan import Plan
from spmilp.problem.objective import Quantity
from spmilp.problem.problem import Problem
from spmilp.report.address_stability import AddressStability
from spmilp.report.search_log import LogEntry, read_log
from spmilp.report.summary import Row, as_html, as_text, quantity
from spmilp.solvers.base import SolveOptions, SolverResult, SolveStatus
from spmilp.solvers.common.context import SearchContext
from spmilp.units import Bytes, Cycles, Femtojoules

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from spmilp.bounds.roofline import Roofline
    from spmilp.explaining.text import Explanation
    from spmilp.export.packed import Footprint
    from spmilp.frontend.graph import Network
    from spmilp.report.page import Page
    from spmilp.simulator.simulate import Simulations

REJECTED = "rejected-"

MOST_ROWS, MOST_SIMULATED = 5_000, 20_000
"""Tasks and transfers of plans of which footprint and simulation are computed without asking."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Origin:
    """The model that a problem was made from, as it was given, and what the front end made of it.

    ``dim`` has the sizes of its dynamic dimensions by name. Of several networks there are as many
    models.
    """

    model: str | tuple[str, ...]
    dim: Mapping[str, int]
    network: "Network"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result:
    """The answer to a problem, and what the checker says of it.

    :func:`spmilp.solve` and :func:`spmilp.read` return it. It shows as a short table; what a plan
    does not have is ``None``, never 0. What needs a plan raises a :class:`NoPlanError` where there
    is none, and figures a :class:`MissingExtraError` without matplotlib.

    Parameters
    ----------
    problem
        Tasks, buffers and the machine.
    answer
        What the solver says; its plan is not to be trusted before the checker has accepted it.
    violations
        What the checker found wrong with the plan: each with its ``rule``, ``objects`` and a
        ``message`` with both numbers. Empty when it accepts the plan, and when there is none.
    asked
        The name of the solver that was asked.
    seconds
        Wall seconds of the whole solve; ``None`` for a plan that was read.
    seconds_to_check
        Those of the check.
    origin
        The model that the problem was made from; ``None`` where it is not known.
    log
        Each better incumbent and bound that the search has found: ``seconds``, ``source``,
        ``incumbent``, ``bound`` and ``gap``.
    lock
        What became of the addresses of an earlier plan, if they were to be kept.
    tiles_are_fallback
        Whether there was no time to compare the tiles with others.
    ended_by
        What ended a search with an effort: the ``effort``, or before it the ``time limit``.
    """

    problem: Problem
    answer: SolverResult
    violations: tuple[Violation, ...] = ()
    asked: str = ""
    seconds: float | None = None
    seconds_to_check: float = 0.0
    origin: Origin | None = None
    log: tuple[LogEntry, ...] = ()
    lock: AddressStability | None = None
    tiles_are_fallback: bool = False
    ended_by: str | None = None

    @property
    def status(self) -> SolveStatus:
        """``optimal``, ``feasible``, ``infeasible`` or ``unknown``, as the solver says."""
        return self.answer.status

    @property
    def plan(self) -> Plan | None:
        """The plan, if there is one and the checker accepts it."""
        return None if self.violations else self.answer.plan

    @property
    def objective(self) -> int | None:
        """Value of the problem's first objective, in cycles, bytes or femtojoules."""
        if self.plan is None:
            return None
        return self.plan.claim.of(self.problem.objective.first)

    @property
    def period(self) -> Cycles | None:
        """Cycles from an inference to the next one; ``None`` of a plan that is no stream."""
        return None if self.plan is None else self.plan.claim.period

    @property
    def makespan(self) -> Cycles | None:
        """The cycle at which all has ended; of a stream, the latency of an inference."""
        return None if self.plan is None else self.plan.claim.makespan

    @property
    def dram_traffic(self) -> Bytes | None:
        """Bytes moved to and from DRAM."""
        return None if self.plan is None else self.plan.claim.dram_traffic

    @property
    def energy(self) -> Femtojoules | None:
        """Femtojoules of tasks and transfers, as far as the machine states them."""
        return None if self.plan is None else self.plan.claim.energy

    @property
    def peak_spm(self) -> Bytes | None:
        """Bytes from address 0 to the highest end of a residency in any scratchpad."""
        return None if self.plan is None else self.plan.claim.peak_spm

    @property
    def bound(self) -> int:
        """A proven lower bound on the objective, for every plan of this problem."""
        return self.answer.bound

    @property
    def bound_source(self) -> str:
        """Name of the argument that proves the bound."""
        return self.answer.bound_source

    @property
    def gap(self) -> float | None:
        """Of these tiles: ``(objective - bound) / objective``; 0 when no plan of them is better."""
        return self._gap_to(self.bound)

    @cached_property
    def bound_of_any_tiles(self) -> int | None:
        """A lower bound on the objective for every plan of every tiling of the network.

        ``None`` without a model, for energy and the period, and where cycles were learned from
        measurements.
        """
        from spmilp.bounds.any_tiles import peak_for_any_tiles, traffic_for_any_tiles

        measured = self.problem.objective.first
        if self.origin is None or measured in (Quantity.ENERGY, Quantity.PERIOD):
            return None
        if measured is Quantity.DRAM_TRAFFIC:
            return traffic_for_any_tiles(self.origin.network)
        if measured is Quantity.PEAK_SPM:
            return peak_for_any_tiles(self.origin.network, self.problem.machine)
        return None if self.roofline is None else self.roofline.cycles

    @property
    def gap_of_any_tiles(self) -> float | None:
        """``(objective - bound_of_any_tiles) / objective``: what other tiles may gain at most.

        With a worse plan ``gap`` may be smaller, because its tiles have another bound; this one
        tells plans of different tilings apart.
        """
        return self._gap_to(self.bound_of_any_tiles)

    @property
    def solver(self) -> str:
        """The solver whose plan it is; the one that was asked, when there is no plan."""
        return self.asked if self.answer.plan is None else self.answer.plan.solver

    @property
    def reason(self) -> str:
        """Why there is no plan, with the numbers; empty when there is one."""
        if self.plan is not None:
            return ""
        if self.violations:
            first = self.violations[0]
            return f"the checker rejects the plan: {first.rule}: {first.message}"
        if self.answer.reason:
            return self.answer.reason
        stop = "interrupted" if self.interrupted else "limit reached"
        return (
            f"{stop} without a plan; bound {self.bound:,} ({self.bound_source}). Give more time "
            "(time limit), or scratchpads more bytes in the machine"
        )

    @property
    def interrupted(self) -> bool:
        """Whether a ``KeyboardInterrupt`` has cut the search short."""
        return self.answer.interrupted

    @cached_property
    def roofline(self) -> "Roofline | None":
        """A lower bound on the makespan for every tiling; ``None`` without a model.

        Also where cycles were learned from measurements: it knows the machine's rates alone.
        """
        from spmilp.bounds.roofline import roofline

        if self.origin is None or any(kind.measured for kind in self.problem.machine.kinds):
            return None
        return roofline(self.origin.network, self.problem.machine)

    @cached_property
    def footprint(self) -> "Footprint | None":
        """What the plan takes in a firmware, in flash and in each memory.

        ``None`` without a plan or a network, of a stream, where no tables can be made, on machines
        with more memory than microcontrollers have, and for more than 5,000 tasks and transfers.
        """
        from spmilp.export.packed import footprint, is_like_microcontroller
        from spmilp.export.subject import Subject

        problem, plan = self.problem, self.plan
        if plan is None or self.origin is None or not is_like_microcontroller(problem.machine):
            return None
        if plan.stream is not None or len(problem.tasks) + len(plan.transfers) > MOST_ROWS:
            return None
        with suppress(SpmilpError):
            return footprint(Subject(problem=problem, plan=plan, network=self.origin.network))
        return None

    @cached_property
    def simulated(self) -> float | None:
        """The makespan of :meth:`simulate`; ``None`` for more than 20,000 tasks and transfers.

        Of a stream there is none.
        """
        if self.plan is None or self.plan.stream is not None:
            return None
        if len(self.problem.tasks) + len(self.plan.transfers) > MOST_SIMULATED:
            return None
        with suppress(SpmilpError):
            return self.simulate().exact.makespan
        return None

    @cached_property
    def tasks(self) -> "pd.DataFrame":
        """A row per task: operator, core, ``start``, ``end`` and ``cycles``, bytes it touches.

        Columns ``bytes_read``, ``bytes_written`` and ``scratch`` are in bytes.
        """
        return frames.task_frame(self.problem, self._there())

    @cached_property
    def transfers(self) -> "pd.DataFrame":
        """A row per DMA transfer: what, from where to where, engine, channel, cycles, bytes."""
        return frames.transfer_frame(self.problem, self._there())

    @cached_property
    def residencies(self) -> "pd.DataFrame":
        """A row per residency: what, in which memory, offset, bytes, ``[start, end)`` in cycles."""
        return frames.residency_frame(self.problem, self._there())

    @cached_property
    def cores(self) -> "pd.DataFrame":
        """A row per core: tasks, busy cycles, utilisation 0 to 1, bytes used of its memory."""
        return frames.core_frame(self.problem, self._there())

    @cached_property
    def memories(self) -> "pd.DataFrame":
        """A row per memory: kind, residencies, ``peak``, ``live_peak``, ``capacity`` in bytes."""
        return frames.memory_frame(self.problem, self._there())

    def timeline(self, *, beside: "Iterable[Result]" = (), chain: bool = False) -> "Figure":
        """Draw tasks per core and transfers per DMA channel over time.

        Other plans ``beside`` are drawn below on the same axis of cycles, with ``chain`` the
        critical chain is framed.
        """
        from spmilp.explaining.chain import AnalysedPlan
        from spmilp.report.figures import timeline

        shown = [
            (each.solver, AnalysedPlan(problem=each.problem, plan=each._there()))
            for each in (self, *beside)
        ]
        return timeline(shown, chain=chain)

    def convergence(self) -> "Figure":
        """Draw incumbent and bound over the seconds of the search.

        A ``ValueError`` says that the plan was read without the log of its search.
        """
        from spmilp.report.figures import gap_over_time

        return gap_over_time(self.problem, self.log)

    def memory_map(self, memories: Sequence[str] | None = None, *, zoom: bool = True) -> "Figure":
        """Draw what lies where in each scratchpad, and when.

        Parameters
        ----------
        memories
            Names of the on-chip memories to draw; by default every scratchpad that is used.
        zoom
            End the axis of addresses above the highest residency; ``False``: at the capacity.

        Raises
        ------
        ValueError
            If a name is not one of the machine's on-chip memories.
        """
        from spmilp.report.figures import memory_map

        return memory_map(self.problem, self._there(), memories, zoom=zoom)

    def report(self, path: str | Path | None = None) -> "Page":
        """Make one page that shows the plan: why it takes its time, and what lies where.

        It needs no network and no other file; a notebook shows it below the cell. With a path it is
        written there, too, and a :class:`FileError` says where that fails.
        """
        from spmilp.report.page import report_page

        page = report_page(self.problem, self._there(), self.title(), self.rows(), self.log)
        if path is not None:
            page.save(path)
        return page

    def explain(self) -> "Explanation":
        """Say why the plan takes its cycles: critical chain, what binds it, idle cores.

        Of a stream: what bounds its period, and what is busiest in it.
        It shows as text of 80 columns; ``data`` has the same as ``spmilp explain --json``.
        :func:`spmilp.explain` says of a problem or a model why nothing fits.
        """
        from spmilp.explaining.chain import AnalysedPlan
        from spmilp.explaining.slow import why_slow

        plan = self._there()
        if plan.stream is not None:
            return why_period(self.problem, plan, plan.stream)
        return why_slow(AnalysedPlan(problem=self.problem, plan=plan))

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write ``problem.json`` and ``plan.json``, and return their paths.

        The files of a plan that the checker rejects are called ``rejected-plan.json`` and
        ``rejected-problem.json``, as far as they can be written at all: an accepted plan in the
        folder stays as it is. A :class:`FileError` says that the folder cannot be written.
        """
        if self.plan is not None:
            return write_pair(self.problem, self.plan, Path(folder))
        if self.answer.plan is None:
            raise NoPlanError(self.reason)
        # The format holds no plan whose indices lead nowhere; the violations say enough of those.
        with suppress(ValueError, IndexError):
            return write_pair(self.problem, self.answer.plan, Path(folder), REJECTED)
        return ()

    def replay(
        self,
        model: str | Path | Sequence[str | Path] | None = None,
        *,
        dim: Mapping[str, int] | None = None,
        input: str | Path | None = None,  # as the option of the command line
        seed: int = 0,
    ) -> "pd.DataFrame":
        """Run the plan on real numbers, and compare each operator with onnxruntime's.

        Parameters
        ----------
        model, dim
            The model that the problem was made from and the sizes of its dynamic dimensions; by
            default those that :func:`spmilp.solve` was given.
        input
            An ``.npz`` file with the network's inputs; without it they are random.
        seed
            Of the random values.

        Returns
        -------
        DataFrame
            A row per output, and ``inference`` of a stream: ``shape``, ``dtype``, the largest
            difference from the model's
            (``absolute``, and ``relative`` to the largest magnitude), whether every
            operator before it is right (``within``), and else ``why`` not.

        Raises
        ------
        ReplayError
            If the plan reads bytes that are not there, or changes bytes while they are read.
        FileError
            If the model is not known, cannot be used, or is another one.
        MissingExtraError
            If onnxruntime or pandas is not installed.
        """
        import pandas as pd

        from spmilp.checker.values.compare import replay_plan

        plan, (model, dim) = self._there(), self._model(model, dim)
        if model is None:
            raise FileError("a replay needs the model that the problem was made from: model=...")
        differences = replay_plan(
            self.problem,
            plan,
            model,
            dims=dim,
            values=None if input is None else Path(input),
            seed=seed,
        )
        columns = ["name", "shape", "dtype", "absolute", "relative", "within", "why"]
        columns += ["inference"] * (plan.stream is not None)
        rows = [tuple(getattr(each, name) for name in columns) for each in differences]
        return pd.DataFrame(rows, columns=columns).set_index("name").rename_axis("output")

    def simulate(self, *, jitter: float = 0.0, seeds: int = 0) -> "Simulations":
        """Run the plan's command lists as hardware does: nothing starts at a planned cycle.

        Parameters
        ----------
        jitter
            Share of each duration by which it varies, up and down: 0.05 for 5 %.
        seeds
            How many runs with jitter there are, beside the one without.

        Returns
        -------
        Simulations
            ``exact``, the run without jitter, with its ``makespan``; ``ratio``, that divided by the
            plan's; ``makespans`` of the others (of a stream: periods; ``simulated`` is that without
            jitter); ``activities()``, a frame of all starts and ends.

        Raises
        ------
        ArgumentError
            If the jitter or the number of seeds cannot be.
        TooManyEventsError
            If the machine has too few events for the plan's command lists.
        """
        from spmilp.simulator.simulate import simulate

        return simulate(self.problem, self._there(), jitter=jitter, seeds=seeds)

    def stream(self) -> "Result":
        """Return the plan's inferences one after another, as soon after each other as is found.

        Cores, transfers and their order stay; weights that fit beside all other data stay in the
        scratchpads. The makespan of the result is the latency of an inference. The objective
        ``period`` of :func:`spmilp.solve` tries other plans as well.

        Raises
        ------
        SpmilpError
            If there is no plan, or data other than weights starts in a scratchpad.

        Examples
        --------
        >>> stream = result.stream()
        >>> stream.period, stream.bound
        """
        from spmilp.solvers.modulo.solver import of_period
        from spmilp.solvers.modulo.stream import stream_of

        problem = of_period(self.problem)
        plan = stream_of(problem, self._there())
        answer = SearchContext(problem, SolveOptions()).found(plan)
        return checked(problem, answer, asked=self.asked, origin=self.origin)

    def export(
        self,
        format: str | Iterable[str],  # as the option of the command line
        folder: str | Path,
        *,
        model: str | Path | Sequence[str | Path] | None = None,
        dim: Mapping[str, int] | None = None,
        prefix: str = "spmilp",
    ) -> tuple[Path, ...]:
        """Write C, tables and a trace that are made from the plan, and return the files.

        Parameters
        ----------
        format
            One or more of ``c``, ``player``, ``c-code``, ``commands``, ``dma``, ``csv``,
            ``perfetto``, ``npe``; ``all`` for each that can take the plan.
        folder
            Where to write.
        model, dim
            As for :meth:`replay`; ``c``, ``player`` and ``c-code`` need it.
        prefix
            What the names of C objects begin with.

        Raises
        ------
        ExportError
            If the plan exceeds a limit of a format; the others are written.
        FileError
            If a file cannot be used or written.
        ValueError
            If there is no such format, or it needs the model and that is not known.
        """
        from spmilp.export.formats import export_plan

        model, dim = self._model(model, dim)
        made = export_plan(
            self.problem,
            self._there(),
            [format] if isinstance(format, str) else format,
            model=model,
            dims=dim,
            prefix=prefix,
        )
        files = made.write(Path(folder))
        made.require_all()
        return files

    def rows(self) -> list[Row]:
        """Return the figures of the plan: name, value, and what it is to be compared with.

        The first gap is the one to what no tiling is below, where that is known: a bad tiling hides
        behind its own bound.
        """
        plan, measured, machine = self.plan, self.problem.objective.first, self.problem.machine
        if plan is None or self.objective is None or self.gap is None:
            return [("reason", self.reason, "")]
        claim, clock, size, percent = plan.claim, "", quantities.size, quantities.percent
        if machine.frequency and claim.makespan:
            seconds = quantities.time(claim.makespan / machine.frequency)
            clock = f"{seconds} at {quantities.frequency(machine.frequency)}"
        made = [("makespan", f"{claim.makespan:,} cycles", clock)]
        if plan.stream is not None:
            made = stream_rows(self.problem, plan, plan.stream)
        made += network_rows(self.problem, plan)
        if self.simulated is not None:
            why = f"{self.simulated / max(1, claim.makespan):.3f} of it: links shared fairly"
            made.append(("simulated", f"{round(self.simulated):,} cycles", why))
        if measured is not Quantity.MAKESPAN and claim.period is None:
            made.append(("objective", quantity(measured, self.objective), measured.value))
        gap, least = self.gap_of_any_tiles, self.bound_of_any_tiles
        if gap is not None and least is not None:
            why = f"to {quantity(measured, least)}, which no tiling is below"
            made.append(("gap", percent(gap), why))
        proof = f"to {quantity(measured, self.bound)}: {self.bound_source}"
        proof += ", optimal" * (self.gap == 0)
        made.append(("gap" if gap is None else "gap of tiles", percent(self.gap), proof))
        compulsory = compulsory_dram_traffic(self.problem, plan.stream)
        against = "none is compulsory"
        if compulsory:
            against = f"{claim.dram_traffic / compulsory:.2f} × compulsory {size(compulsory)}"
        made.append(("DRAM traffic", size(claim.dram_traffic), against))
        made.append(("peak SPM", size(claim.peak_spm), self._fullest_scratchpad(plan)))
        if claim.energy:
            made.append(("energy", f"{claim.energy / 1e9:,.3f} µJ", "of what the machine states"))
        if self.tiles_are_fallback:
            why = "there was no time to compare others: give more (time limit)"
            made.append(("tiles", "a fallback", why))
        return [
            *made,
            ("tasks", f"{len(plan.placements):,}", ""),
            ("transfers", f"{len(plan.transfers):,}", ""),
            ("solver", self.solver, self._how_long()),
        ]

    def _how_long(self) -> str:
        """Say how long it took, and what ended the search where its work was limited."""
        seconds = "" if self.seconds is None else f"{self.seconds:.1f} s in all"
        if self.ended_by == "time limit":
            return f"{seconds}; the time limit ended it before its effort, so it may not repeat"
        return seconds if self.ended_by is None else f"{seconds}, repeatable"

    def _fullest_scratchpad(self, plan: Plan) -> str:
        """Name the scratchpad of which the largest share is used."""
        shares = [
            (use["peak"] / use["capacity"], use)
            for use in frames.memory_rows(self.problem, plan)
            if use["kind"] == MemoryKind.SPM and use["capacity"]
        ]
        if not shares:
            return ""
        share, use = max(shares, key=lambda each: each[0])
        return f"{quantities.percent(share)} of {quantities.size(use['capacity'])} in {use['name']}"

    def data(self) -> dict[str, object]:
        """Return the answer as ``spmilp solve --json`` has it; what there is not is ``None``."""
        problem, machine, plan = self.problem, self.problem.machine, self.plan
        cores = memories = None
        if plan is not None:
            cores = [
                {"core": use["name"]}
                | {name: use[name] for name in ("tasks", "busy", "utilisation")}
                for use in frames.core_rows(problem, plan)
            ]
            memories = [
                {"memory": use["name"]} | {name: use[name] for name in ("kind", "peak", "capacity")}
                for use in frames.memory_rows(problem, plan)
                if use["kind"] != MemoryKind.DRAM and use["capacity"] is not None
            ]
        clock = plan and machine.frequency and plan.claim.makespan / machine.frequency
        return {
            "network": network_name(problem),
            "machine": machine.name,
            "quantity": str(problem.objective.first),
            "objective": self.objective,
            "bound": self.bound,
            "bound_source": self.bound_source,
            "gap": self.gap,
            "makespan": self.makespan,
            "makespan_seconds": clock,
            "simulated": self.simulated,
            "stream": plan and stream_data(problem, plan),
            "networks": plan and network_data(problem, plan),
            "dram_traffic": self.dram_traffic,
            "compulsory_dram_traffic": plan and compulsory_dram_traffic(problem, plan.stream),
            "energy": self.energy,
            "peak_spm": self.peak_spm,
            "tasks": plan and len(plan.placements),
            "transfers": plan and len(plan.transfers),
            "cores": cores,
            "memories": memories,
            "unverified": list(machine.unverified),
            "bound_of_any_tiles": self.bound_of_any_tiles,
            "gap_of_any_tiles": self.gap_of_any_tiles,
            "tiles_are_fallback": self.tiles_are_fallback,
            "ended_by": self.ended_by,
            "roofline": self.roofline and self.roofline.cycles,
            "footprint": self.footprint and self.footprint.fields(),
            "status": str(self.status),
            "reason": self.answer.reason or None,
            "solver": self.solver,
            "seconds_to_check": round(self.seconds_to_check, 3),
            "checked": plan is not None,
            "violations": [asdict(found) for found in self.violations],
            "lock": self.lock and asdict(self.lock),
        }

    def __str__(self) -> str:
        """Return the figures as a table for a terminal."""
        return as_text(self.title(), self.rows())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self.title(), self.rows())

    def title(self, how: str = "") -> str:
        """Say what is mapped onto what, and how it ended."""
        machine = self.problem.machine
        cores = quantities.count(len(machine.cores), "core")
        verdict = "" if self.plan is None else ", checked"
        return (
            f"{network_name(self.problem)} on {machine.name} ({cores}): {self.status}{how}{verdict}"
        )

    def _gap_to(self, bound: int | None) -> float | None:
        if self.objective is None or bound is None:
            return None
        return quantities.relative_gap(self.objective, bound)

    def _there(self) -> Plan:
        if self.plan is None:
            raise NoPlanError(self.reason)
        return self.plan

    def _model(
        self, model: str | Path | Sequence[str | Path] | None, dim: Mapping[str, int] | None
    ) -> tuple[str | Path | Sequence[str | Path] | None, Mapping[str, int]]:
        if model is None and self.origin is not None:
            return self.origin.model, self.origin.dim if dim is None else dim
        return model, dim or {}


def checked(problem: Problem, answer: SolverResult, **more: Any) -> Result:
    """Let the checker decide about the plan of an answer; ``more`` are other fields."""
    verdict = answer.verdict_on(problem)
    if verdict is not None:
        more |= {"violations": verdict.violations, "seconds_to_check": verdict.seconds}
    return Result(problem=problem, answer=answer, **more)


def read(
    path: str | Path, *, problem: str | Path | None = None, log: str | Path | None = None
) -> Result:
    """Read a plan that was saved, with its problem, and check it.

    Parameters
    ----------
    path
        The folder of :meth:`Result.save`, or its ``plan.json``.
    problem
        The problem's file; by default ``problem.json`` beside the plan.
    log
        The log of the search in JSON lines, where it was kept.

    Returns
    -------
    Result
        With the objective and the bound that the plan states, which the checker has recomputed. It
        does not know the model, which :meth:`Result.replay` therefore asks for.

    Raises
    ------
    FileError
        If a file cannot be read, or the plan was made for another problem.

    Examples
    --------
    >>> result = spmilp.read("out/net")
    >>> result.replay("net.onnx")
    """
    opened, plan = open_pair(Path(path), None if problem is None else Path(problem))
    claim = plan.claim
    value = claim.of(opened.objective.first)
    answer = SolverResult(
        status=SolveStatus.OPTIMAL if value == claim.bound else SolveStatus.FEASIBLE,
        plan=plan,
        bound=claim.bound,
        bound_source=claim.bound_source,
    )
    result = checked(opened, answer)
    return result if log is None else replace(result, log=read_log(Path(log)))
