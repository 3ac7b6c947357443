"""Which passes over a network are on: fusion, simplification, layouts, shared bytes.

The passes are those that nGraph (Intel, arXiv 1801.08058) and DLVM (Wei, Schwartz and Adve,
arXiv 1711.03016) name, and TVM's fusion (T. Chen et al., OSDI 2018, section 3). Of nGraph's and
DLVM's lists we could read the names only; what each does here is said beside its switch.
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from spmilp.errors import ArgumentError
from spmilp.files import sha256_of
from spmilp.formats import near_matches
from spmilp.units import Bytes

PREFIX = "passes "
"""Begins what a problem says of the passes that it was made with."""

ROOMS = "rooms="
"""Begins the change that says into how many bytes tiles have to fit, with / between kinds."""


class Fuse(StrEnum):
    """How operators become groups.

    ``default``
        TVM's classes, with more element-wise operators around anchors, and no element computed
        twice but in halos.
    ``tvm``
        TVM's classes and nothing more: injective operators into one another, reductions with the
        injective operators before them, complex operators with the element-wise ones behind them,
        opaque ones alone.
    ``none``
        Every operator by itself.
    """

    DEFAULT = "default"
    TVM = "tvm"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """What is on.

    Parameters
    ----------
    batch_norm
        Normalisation is folded into the weights before it.
    simplify
        Algebraic simplification: neutral elements, operators that undo or repeat each other.
    cse
        Common subexpressions, and equal constants, are there once.
    layout
        A chain of element-wise operators keeps the layout in which its data comes and goes, so that
        the two transpositions around it cancel.
    sharing
        Results may take over the bytes of operands that nothing reads any more.
    rooms
        Of each kind of core, or of all kinds, the bytes into which some tile of an operator has to
        fit; else it is divided. Empty for what the machine's memories hold. A problem with divided
        operators knows what they held.
    """

    fuse: Fuse = Fuse.DEFAULT
    batch_norm: bool = True
    simplify: bool = True
    cse: bool = True
    layout: bool = True
    sharing: bool = True
    rooms: tuple[Bytes, ...] = ()

    def __str__(self) -> str:
        """Return the changes from the default, as :func:`passes_from` reads them."""
        said = [f"fuse={self.fuse}"] if self.fuse is not Fuse.DEFAULT else []
        said += [f"no-{name}" for name in SWITCHES if not getattr(self, name)]
        return ",".join(said + [f"{ROOMS}{'/'.join(map(str, self.rooms))}"] * bool(self.rooms))

    @property
    def sources(self) -> tuple[tuple[str, str], ...]:
        """What a problem that was made with other passes than the default says of them."""
        text = f"{PREFIX}{self}"
        return ((text, sha256_of(text.encode())),) if self != DEFAULT_PASSES else ()


SWITCHES = tuple(field.name for field in fields(Passes) if field.type is bool)
DEFAULT_PASSES = Passes()
CHANGES: dict[str, dict[str, Any]] = {f"fuse={one}": {"fuse": one} for one in Fuse}
CHANGES |= {f"no-{name}": {name: False} for name in SWITCHES}
"""From a change, as it is written, to fields of :class:`Passes`."""


def passes_from(text: str) -> Passes:
    """Read ``fuse=tvm,no-cse`` and its like: changes from the default, with commas between them.

    Raises an ``ArgumentError`` if there is no such pass.
    """
    found = DEFAULT_PASSES
    for change in filter(None, map(str.strip, text.split(","))):
        rooms = change.removeprefix(ROOMS).split("/")
        if change.startswith(ROOMS) and all(map(str.isdecimal, rooms)):
            found = replace(found, rooms=tuple(map(int, rooms)))
        elif change in CHANGES:
            found = replace(found, **CHANGES[change])
        else:
            raise ArgumentError(
                f"passes: {change!r}{near_matches(change, tuple(CHANGES))}; there are "
                f"{', '.join(CHANGES)}, {ROOMS}BYTES",
                is_option=True,
            )
    return found


def passes_of(sources: tuple[tuple[str, str], ...]) -> Passes:
    """Return the passes that a problem was made with, by its sources."""
    text = next((what for what, _ in sources if what.startswith(PREFIX)), PREFIX)
    return passes_from(text.removeprefix(PREFIX))
