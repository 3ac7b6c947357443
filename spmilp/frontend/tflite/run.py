"""What LiteRT finds out by running a model once: lengths that a file leaves open, and constants."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.units import Extents


class Run:
    """A model that LiteRT has run on zeros, with a batch of 1; nothing is known where it cannot."""

    def __init__(self, content: bytes) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        self._interpreter: Any = None
        try:
            interpreter = Interpreter(
                model_content=content,
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                experimental_preserve_all_tensors=True,
                num_threads=1,
            )
            interpreter.allocate_tensors()
            for each in interpreter.get_input_details():
                interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))
            interpreter.invoke()
        except (RuntimeError, ValueError):
            return
        self._interpreter = interpreter

    def shapes(self, recorded: Sequence[Extents]) -> list[Extents]:
        """Return the shape of each tensor; what the file says of it where LiteRT does not know."""
        if self._interpreter is None:
            return [*recorded]
        found = {one["index"]: one["shape"] for one in self._interpreter.get_tensor_details()}
        return [tuple(map(int, found.get(at, shape))) for at, shape in enumerate(recorded)]

    def values(self, tensors: Sequence[int]) -> dict[int, NDArray[Any]]:
        """Return the values of some tensors; none where LiteRT does not know all of them."""
        if self._interpreter is None:
            return {}
        try:
            return {one: np.array(self._interpreter.get_tensor(one)) for one in tensors}
        except ValueError:
            return {}
