"""Files of cost models: numbers only, as JSON.

The trees are walked by :mod:`spmilp.lowering.learned`, so that nothing of a file is ever executed.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from spmilp.errors import FileError
from spmilp.files import read_bytes, sha256_of, write_atomically
from spmilp.lowering.learned import CostModel, FamilyModel, Quality, Trees
from spmilp.machine.fields import Amount, FileModel
from spmilp.problem.documents import read_document

FORMAT, VERSION = "spmilp-cost-model", "1.0"
MOST_BYTES = 1 << 26
"""Of a model's file."""

Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]


class _Trees(FileModel):
    roots: tuple[Amount, ...]
    feature: tuple[int, ...]
    threshold: tuple[Finite, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    value: tuple[Finite, ...]


class _Quality(FileModel):
    error: Finite
    rank: Finite


class _Family(FileModel):
    kind: str
    operator: str
    dtype: str
    rows: Amount
    low: tuple[Finite, ...]
    high: tuple[Finite, ...]
    offset: Finite
    trees: _Trees
    scores: tuple[Finite, ...]
    logs: tuple[Finite, ...]
    learned: _Quality
    by_rule: _Quality


class _Model(FileModel):
    format: str
    format_version: str
    objective: Literal["error", "rank"]
    seed: Amount
    measured: str
    kinds: tuple[tuple[str, str], ...]
    families: tuple[_Family, ...]


def write_cost_model(model: CostModel, path: Path | str) -> None:
    """Write a model's file: the same bytes for the same model.

    Raises
    ------
    FileError
        If the file cannot be written.
    """
    content = {"format": FORMAT, "format_version": VERSION} | asdict(model)
    write_atomically(path, json.dumps(content, separators=(",", ":"), allow_nan=False) + "\n")


def read_cost_model(path: Path | str) -> tuple[CostModel, str]:
    """Return a model from its file, and the file's SHA-256.

    Raises
    ------
    FileError
        If the file cannot be read, or is no model.
    """
    if Path(path).is_file() and Path(path).stat().st_size > MOST_BYTES:
        raise FileError(
            f"{path}: has {Path(path).stat().st_size} B, more than the {MOST_BYTES} B of any model"
        )
    data = read_bytes(path)
    given = read_document(path, data, _Model, FORMAT, VERSION)
    try:
        families = tuple(map(_family, given.families))
    except ValueError as error:
        raise FileError(f"{path}: {error}") from error
    model = CostModel(
        objective=given.objective,
        seed=given.seed,
        measured=given.measured,
        kinds=given.kinds,
        families=families,
    )
    return model, sha256_of(data)


def _family(given: _Family) -> FamilyModel:
    plain = dict(given)
    plain["trees"] = Trees(**dict(given.trees))
    plain["learned"] = Quality(**dict(given.learned))
    plain["by_rule"] = Quality(**dict(given.by_rule))
    return FamilyModel(**plain)
