"""Kernels whose machine code is kept as object files and loaded by llvmlite alone.

Importing numba and reading from its cache takes longer than most packings do. What is loaded here
is what numba compiled for the function itself, without what it puts around it for Python, and is
called as numba calls it: a pointer to the result, one to the exception, then each whole number, and
for each array seven of them (two owners, number and bytes of elements, address, length, stride).
"""

import ctypes
import hashlib
import inspect
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from time import perf_counter
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")

Compile = Callable[[Callable[..., Any], tuple[Any, ...]], tuple[str, bytes] | None]
"""From a function and arguments to the symbol and the code, as ``compiler.object_code``."""

FEW_STEPS = 5_000
"""Elementary steps that take no longer in Python than loading machine code."""
MORE_STEPS = 100_000
"""Steps that take some tenths of a second in Python, where compiling takes several seconds."""
RETURNED, RETURNED_NOTHING = 0, -2
"""What compiled functions return besides the result (``RETCODE_OK`` and ``RETCODE_NONE``)."""


class Spent:
    """Wall seconds of this process that went into compiling and loading."""

    seconds = 0.0


class Standalone(Generic[P, R]):
    """A function that is compiled once for each kind of arguments, or loaded."""

    def __init__(
        self,
        function: Callable[P, R],
        compile_: Compile,
        with_numba: Callable[[Callable[P, R]], Callable[P, R]],
    ) -> None:
        self._function = function
        self._compile = compile_
        self._with_numba = with_numba
        self._by_numba: Callable[P, R] | None = None
        self._loaded: dict[str, Callable[[list[int]], Any]] = {}
        self._steps_in_python = 0
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the machine code."""
        if not _compilation_is_on():
            return self._function(*args, **kwargs)
        if kwargs:
            raise TypeError(f"{self._function.__name__} takes its arguments by position alone")
        if self._by_numba is not None:
            return self._by_numba(*args, **kwargs)
        kinds: list[str] = []
        numbers: list[int] = []
        _take_apart(args, kinds, numbers)
        kind = "".join(kinds)
        if kind not in self._loaded:
            began = perf_counter()
            loaded = self._load(kind, args)
            Spent.seconds += perf_counter() - began
            if loaded is None:
                self._by_numba = self._with_numba(self._function)
                return self._by_numba(*args, **kwargs)
            self._loaded[kind] = loaded
        result: R = self._loaded[kind](numbers)
        return result

    def in_about(self, steps: int) -> Callable[P, R]:
        """Return what to call for a task of so many elementary steps.

        It is the function in Python where machine code would have to be made first and the steps
        are few, with those of earlier tasks.
        """
        if self.steps_for_python(steps) < steps:
            return self
        self._steps_in_python += steps
        return self._function

    def steps_for_python(self, steps: int) -> int:
        """Return how many of a task's next steps Python should take; none with machine code."""
        if not _compilation_is_on():
            return steps
        if self._loaded or self._by_numba is not None:
            return 0
        few = max(0, FEW_STEPS - self._steps_in_python)
        if steps <= few or any(self._folder().glob(f"{self._function.__name__}-*")):
            return few
        return max(0, MORE_STEPS - self._steps_in_python)

    def _folder(self) -> Path:
        from spmilp.code_cache import folder_for

        return folder_for(self._function.__module__, Path(inspect.getfile(self._function)))

    def _load(self, kind: str, arguments: tuple[Any, ...]) -> Callable[[list[int]], Any] | None:
        kind_hash = hashlib.sha256(kind.encode()).hexdigest()[:16]
        file = self._folder() / f"{self._function.__name__}-{kind_hash}"
        found = _read(file)
        if found is None:
            found = self._compile(self._function, arguments)
            if found is None:
                return None
            _write(file, *found)
        return _linked(*found)


def _compilation_is_on() -> bool:
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")


def _take_apart(argument: Any, kinds: list[str], numbers: list[int]) -> None:
    """Append the numbers that stand for an argument, and what tells its kind from others."""
    if isinstance(argument, np.ndarray):
        if argument.ndim != 1 or not argument.flags.carray:
            raise TypeError("expected an array of one dimension, contiguous and writeable")
        kinds.append(argument.dtype.char)
        size, width = argument.size, argument.itemsize
        # Much quicker than the array's own ways to say its address; of nothing there is none.
        address = ctypes.addressof(ctypes.c_char.from_buffer(argument.data)) if size else 0
        numbers += (0, 0, size, width, address, size, width)
    elif isinstance(argument, tuple):
        kinds.append(f"({type(argument).__qualname__}:")
        for one in argument:
            _take_apart(one, kinds, numbers)
        kinds.append(")")
    elif isinstance(argument, (int, np.int64)) and not isinstance(argument, bool):
        kinds.append("i")
        numbers.append(int(argument))
    else:
        raise TypeError(f"expected whole numbers and arrays, found {type(argument).__name__}")


def _read(file: Path) -> tuple[str, bytes] | None:
    """Return the symbol and the code; None where there is no whole file.

    What is not whole must not be linked: that could end the process.
    """
    with suppress(OSError):
        symbol, _, rest = file.read_bytes().partition(b"\n")
        digest, code = rest[:32], rest[32:]
        if digest == hashlib.sha256(symbol + code).digest():
            return symbol.decode(), code
    return None


def _write(file: Path, symbol: str, code: bytes) -> None:
    """Write a file as a whole, or not at all where that cannot be done."""
    from spmilp.code_cache import can_be_written, remove_older

    if not can_be_written(file.parent):
        return
    digest = hashlib.sha256(symbol.encode() + code).digest()
    with suppress(OSError), NamedTemporaryFile(dir=file.parent, delete=False) as temporary:
        temporary.write(symbol.encode() + b"\n" + digest + code)
        temporary.close()
        os.replace(temporary.name, file)
        remove_older(file.parent)


def _linked(symbol: str, code: bytes) -> Callable[[list[int]], Any]:
    """Return a function that takes the numbers of all arguments; it runs without the lock."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        jit=True, codemodel="jitdefault"
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    prototype = ctypes.CFUNCTYPE(ctypes.c_int32)
    entry = prototype(engine.get_function_address(symbol))
    whole, pointer = ctypes.c_int64, ctypes.c_void_p

    def call(numbers: list[int], lives_with_its_code: Any = engine) -> int | None:
        result, exception = whole(), pointer()
        if not entry.argtypes:
            entry.argtypes = [pointer, pointer, *[whole] * len(numbers)]
        ended = entry(ctypes.addressof(result), ctypes.addressof(exception), *numbers)
        if ended == RETURNED_NOTHING:
            return None
        if ended != RETURNED:
            raise RuntimeError(f"a compiled function failed with code {ended}")
        return result.value

    return call
