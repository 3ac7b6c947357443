"""An export as users ask for it, and its files in memory."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from spmilp.errors import ArgumentError
from spmilp.export.dma import ENCODINGS
from spmilp.export.formats import FORMATS, Exported, export
from spmilp.export.subject import Profile, Subject, stamp_of
from spmilp.files import read_bytes
from spmilp.formats import collector_paused
from spmilp.frontend.load import load_network_of
from spmilp.machine.machine import Machine, MemoryKind
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

ALL = "all"

MICROCONTROLLER_BYTES = 16 << 20
"""Bytes on chip up to which a machine is like a microcontroller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Formats and settings of one export.

    Parameters
    ----------
    wanted
        Formats that must be made.
    if_possible
        Formats that are left out where the plan exceeds a limit of their target.
    model, dims
        The source of the problem; some formats need it.
    prefix
        Beginning of the names of C objects.
    controllers
        ``(pattern of engine names, controller)``; by default those of the machine.
    profile
        Of the C tables and the player; ``None`` for that of the machine (:func:`default_profile`).
    """

    wanted: tuple[str, ...]
    if_possible: tuple[str, ...] = ()
    model: str | Path | None = None
    dims: Mapping[str, int]
    prefix: str = "spmilp"
    controllers: tuple[tuple[str, str], ...] = ()
    profile: Profile | None = None

    @classmethod
    def of(
        cls,
        formats: Iterable[str],
        *,
        model: str | Path | None,
        dims: Mapping[str, int],
        prefix: str,
        controllers: Iterable[str],
        profile: str | None = None,
    ) -> "ExportRequest":
        """Read a request as users write it.

        Parameters
        ----------
        formats
            Names, several in one with commas between them; ``all`` for each that can take the plan.
        controllers
            ``NAME`` for all engines, or ``ENGINE=NAME`` with ``*`` and ``?`` in the engine's name.

        Raises
        ------
        ArgumentError
            If a name is unknown, or a format needs a model and there is none.
        """
        named = _named(formats)
        wanted = tuple(name for name in named if name != ALL)
        for name in wanted:
            if FORMATS[name].needs_model and model is None:
                raise ArgumentError(
                    f"format {name} needs the model: add --model MODEL.onnx", is_option=True
                )
        able = [name for name, each in FORMATS.items() if model is not None or not each.needs_model]
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", prefix):
            raise ArgumentError(
                f"prefix {prefix!r}: expected a letter, then at most 30 letters, digits or _",
                is_option=True,
            )
        return cls(
            wanted=wanted,
            if_possible=tuple(able) if ALL in named else (),
            model=model,
            dims=dims,
            prefix=prefix,
            controllers=tuple(map(_controller, controllers)),
            profile=None if profile is None else _profile(profile, has_model=model is not None),
        )


def export_plan(problem: Problem, plan: Plan, request: ExportRequest) -> Exported:
    """Make the files in memory, from a plan that the checker has accepted.

    Raises
    ------
    FileError
        If the model cannot be used or is another one.
    """
    network, content = None, None
    if request.model is not None:
        file, network = load_network_of(problem, request.model, request.dims)
        content = read_bytes(file)
    subject = Subject(
        problem=problem,
        plan=plan,
        stamp=stamp_of(problem, plan),
        network=network,
        model=content,
        prefix=request.prefix,
        controllers=request.controllers,
        profile=request.profile or default_profile(problem.machine, has_model=network is not None),
    )
    with collector_paused():
        return export(subject, request.wanted, request.if_possible)


def default_profile(machine: Machine, *, has_model: bool) -> Profile:
    """Return the profile of machines that are like microcontrollers, or that of others.

    Without the model there is nothing to run: then the tables describe the plan.
    """
    return Profile.RELEASE if is_like_microcontroller(machine) and has_model else Profile.DEBUG


def is_like_microcontroller(machine: Machine) -> bool:
    """Say whether a machine has so little memory on chip that its flash will be scarce too."""
    on_chip = [memory.size or 0 for memory in machine.memories if memory.kind != MemoryKind.DRAM]
    return sum(on_chip) <= MICROCONTROLLER_BYTES


def _profile(name: str, *, has_model: bool) -> Profile:
    if name not in list(Profile):
        raise ArgumentError(
            f"profile {name}: there are {', '.join(Profile)}",
            is_option=True,
        )
    if name == Profile.RELEASE and not has_model:
        raise ArgumentError(
            "profile release keeps what runs, which only the model says: add --model MODEL.onnx",
            is_option=True,
        )
    return Profile(name)


def _named(lists: Iterable[str]) -> list[str]:
    """Return the names of lists like ``csv,md``; every name must be known."""
    names = [name.strip() for text in lists for name in text.split(",") if name.strip()]
    known = f"there are {', '.join(FORMATS)} and {ALL}"
    if not names:
        raise ArgumentError(f"format: {known}", is_option=True)
    for name in names:
        if name != ALL and name not in FORMATS:
            raise ArgumentError(f"format {name}: {known}", is_option=True)
    return names


def _controller(text: str) -> tuple[str, str]:
    engine, equals, name = text.rpartition("=")
    if name not in ENCODINGS or (equals and not engine):
        raise ArgumentError(
            f"controller {text}: expected NAME or ENGINE=NAME; there are {', '.join(ENCODINGS)}",
            is_option=True,
        )
    return engine or "*", name
