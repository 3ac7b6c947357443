"""Readable names of boxes: ``conv1[0,0:16,0:14,:]``."""

from spmilp.units import Box, Extents


def box_name(of: str, box: Box, shape: Extents) -> str:
    """Return the name of a box of something of ``shape``; the whole of it has the plain name.

    An axis that is whole is ``:``, a single position its number.
    """
    if all((start, stop) == (0, length) for (start, stop), length in zip(box, shape, strict=True)):
        return of
    axes = (_interval(*interval, length) for interval, length in zip(box, shape, strict=True))
    return f"{of}[{','.join(axes)}]"


def _interval(start: int, stop: int, length: int) -> str:
    if stop - start == 1:
        return str(start)
    return ":" if (start, stop) == (0, length) else f"{start}:{stop}"
