"""The YAML format of a suite; ``docs/benchmarks.md`` explains it.

Where one value is expected a list may stand: the entry then stands for every combination.
"""

from fractions import Fraction
from typing import Annotated, TypeAlias, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from spmilp.machine.fields import Amount, Count, FileModel, Rate
from spmilp.problem.objective import Quantity
from spmilp.tile_selection.mode import Tiles

T = TypeVar("T")


def _listed(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


OneOrMore: TypeAlias = Annotated[
    tuple[T, ...], BeforeValidator(_listed), Field(min_length=1, max_length=1000)
]
"""One value, or a list of them."""

Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=300)]
SolverName: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9:/*?_-]*$", max_length=100)]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=1e6)]
Workers: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=1024)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Size: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=10_000_000)]


class PeerFields(FileModel):
    """The figure of another tool on the same input."""

    name: Text
    value: Amount
    source: Text


class GeneratedFields(FileModel):
    """Sizes of generated problems."""

    tasks: OneOrMore[Size]
    cores: OneOrMore[Size]
    seed: OneOrMore[Amount] = (0,)


class RunFields(FileModel):
    """A suite of rows; an entry's own fields go before those of the suite."""

    solvers: Annotated[tuple[SolverName, ...], Field(min_length=1)] | None = None
    seeds: Annotated[tuple[Amount, ...], Field(min_length=1)] | None = None
    time_limit_seconds: Seconds | None = None
    workers: Workers | None = None
    gap: Share | None = None


class EntryFields(RunFields):
    """One problem, or every combination of some."""

    problem: OneOrMore[Text] | None = None
    model: OneOrMore[Text] | None = None
    machine: OneOrMore[Text] | None = None
    dims: dict[Text, Count] | None = None
    dram: OneOrMore[Rate] | None = None
    spm: OneOrMore[Rate] | None = None
    tiles: OneOrMore[Tiles] | None = None
    generated: GeneratedFields | None = None
    builder: OneOrMore[Text] | None = None
    objective: OneOrMore[Quantity] | None = None
    peer: PeerFields | None = None

    @model_validator(mode="after")
    def _it_has_one_source(self) -> "EntryFields":
        sources = ("problem", "model", "generated", "builder")
        given = [name for name in sources if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none of them"
            raise ValueError(f"give one of {', '.join(sources)}; there is {found}")
        if given == ["model"] and self.machine is None:
            raise ValueError("model needs a machine")
        if given != ["model"]:
            for name in ("machine", "dims", "dram", "spm", "tiles"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} goes with model, not with {given[0]}")
        return self


class SuiteFields(RunFields):
    """A whole suite file."""

    description: str = ""
    solvers: Annotated[tuple[SolverName, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Amount, ...], Field(min_length=1)] = (0,)
    time_limit_seconds: Seconds = 60.0
    workers: Workers = 1
    gap: Share = 0.0
    rows: Annotated[tuple[EntryFields, ...], Field(min_length=1)]


ONCE: Fraction = Fraction(1)
