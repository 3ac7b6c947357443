"""Small draws that the strategies of cases share."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from operators.onnx_case import Array

Draw = Callable[[st.SearchStrategy[Any]], Any]


def values(draw: Draw, *shape: int, low: float | None = None) -> Array:
    """Draw normal float32 values; with ``low``, values from there up."""
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    if low is None:
        return generator.normal(size=shape).astype(np.float32)
    return (low + 2 * generator.random(shape)).astype(np.float32)


def whole_numbers(draw: Draw, low: int, high: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Draw integers from ``low`` up to below ``high``."""
    generator = np.random.default_rng(draw(st.integers(0, 1000)))
    return generator.integers(low, high, size=shape).astype(dtype)


def some_shape(draw: Draw, low: int = 1, high: int = 4, longest: int = 6) -> tuple[int, ...]:
    """Draw a shape of ``low`` to ``high`` axes."""
    rank = draw(st.integers(low, high))
    return tuple(draw(st.integers(1, longest)) for _ in range(rank))


def broadcast_partner(draw: Draw, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Draw a shape that broadcasts to ``shape``."""
    own = shape[draw(st.integers(0, len(shape))) :]
    return tuple(1 if draw(st.booleans()) else length for length in own)
