"""Seeded pseudo-random numbers that are the same, bit for bit, on every computer.

NumPy promises to keep the raw stream of a bit generator, but not what its distributions make of
it (NEP 19). The numbers here are made of raw bits by exactly rounded operations alone.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class RandomNumbers:
    """A stream of numbers; each call continues where the last one ended."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def uniform(self, shape: Sequence[int], low: float, high: float) -> NDArray[np.float32]:
        """Return float32 numbers, uniform in ``[low, high)``."""
        raw = self._bits.random_raw(math.prod(shape))
        unit = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
        return (low + (high - low) * unit).astype(np.float32).reshape(shape)

    def normal(self, shape: Sequence[int]) -> NDArray[np.float32]:
        """Return numbers of zero mean and unit variance, the sums of twelve uniform ones.

        Close to a normal distribution within three deviations, and never beyond six.
        """
        return self.uniform((12, *shape), -0.5, 0.5).sum(axis=0)

    def he(self, shape: Sequence[int], fan_in: int) -> NDArray[np.float32]:
        """Return uniform weights of variance ``2 / fan_in`` (He et al., ICCV 2015, section 2.2)."""
        limit = math.sqrt(6 / fan_in)
        return self.uniform(shape, -limit, limit)
