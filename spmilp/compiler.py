"""Compilation with numba, which :mod:`spmilp.compiled` imports only where there is need."""

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from numba import njit, typeof
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.callconv import RETCODE_NONE, RETCODE_OK
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.datamodel.registry import default_manager
from numba.core.event import Event, Listener, register, trigger_event
from numba.core.registry import cpu_target
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import infer_global

from spmilp.code_cache import can_be_written, folder_for, remove_older
from spmilp.machine_code import RETURNED, RETURNED_NOTHING
from spmilp.processes import signals_wait

P = ParamSpec("P")
R = TypeVar("R")

ARRAY = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")
"""What is passed for an array of one dimension; see :mod:`spmilp.machine_code`."""

_WITHOUT_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _Stopwatch(Listener):
    """Adds up the seconds in which code is compiled or loaded; nested ones count once.

    Attributes
    ----------
    seconds
        Until now, but for what is under way.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._began = 0, 0.0

    def on_start(self, event: Event) -> None:
        """Begin to count with the outermost function."""
        if self._depth == 0:
            self._began = perf_counter()
        self._depth += 1

    def on_end(self, event: Event) -> None:
        """Count what that took."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += perf_counter() - self._began


LOADING = "spmilp:load"
"""Code comes from the cache: a kind of event beside numba's own for compiling."""

STOPWATCH = _Stopwatch()
register("numba:compile", STOPWATCH)
register(LOADING, STOPWATCH)


def with_cache(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    """Return a function that numba compiles for each kind of arguments, or finds in its cache."""
    made: Any = njit(nogil=True, **options)(function)
    result: Callable[P, R] = made
    if result is function:
        return function
    made.compile = _finishing(made.compile)
    # numba says with a RuntimeError that there is no folder to write to.
    with suppress(RuntimeError, OSError):
        made._cache = _Cache(function)
    return _raising_interrupts(result)


def _finishing(compile_: Callable[P, R]) -> Callable[P, R]:
    """Return the function, which signals do not cut: half of a function's code is a crash later."""

    @wraps(compile_)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        with signals_wait():
            return compile_(*args, **kwargs)

    return called


def _raising_interrupts(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, which lets an interrupt pass on that came while its code ran.

    Python handles a signal as soon as it runs code of its own: when numba makes Python objects of
    what is returned, as a rule, and what that raises is said by Python to be a ``SystemError``.
    """

    @wraps(function, updated=())
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except SystemError as error:
            raise _cause(error) from None

    return called


def _cause(error: BaseException) -> BaseException:
    """Return what was raised first where one ``SystemError`` was made of another error."""
    while isinstance(error, SystemError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def can_be_called_without_numba() -> bool:
    """Say whether this numba passes arguments as :mod:`spmilp.machine_code` does."""
    array = types.Array(types.int64, 1, "C")
    conventions = cpu_target.target_context.call_conv
    passed = conventions.get_function_type(types.int64, (array, types.int64)).args
    return (
        default_manager.lookup(array)._fields == ARRAY
        and len(passed) == len(("result", "exception", *ARRAY, "number"))
        and (RETCODE_OK.constant, RETCODE_NONE.constant) == (RETURNED, RETURNED_NOTHING)
    )


def object_code(
    function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[str, bytes] | None:
    """Return the machine code of a function for the kinds of its arguments, and its symbol there.

    It refers to nothing outside of itself, so that it can be loaded where numba is not; ``None``
    if this numba passes arguments in another way than is known there.
    """
    if not can_be_called_without_numba():
        return None
    without_arrays_counted: dict[str, Any] = {"_nrt": False}
    made: Any = njit(**without_arrays_counted, **_WITHOUT_WRAPPERS)(function)
    signature = tuple(typeof(argument) for argument in arguments)
    made.compile(signature)
    result = made.overloads[signature]
    _, _, (code, _) = result.library.serialize_using_object_code()
    return result.fndesc.llvm_func_name, code


def make_part(function: Callable[..., Any]) -> None:
    """Make a function known to numba as one that compiled functions call."""
    body: Any = njit(pipeline_class=_PartCompiler, **_WITHOUT_WRAPPERS)(function)
    if body is not function:
        infer_global(function, types.Dispatcher(body))
        # numba refers to the compiled function weakly: it lives as long as the Python function.
        vars(function)["compiled"] = body


class _PartLibrary(JITCodeLibrary):
    """Code to be linked into other code, with which it is optimised and made executable."""

    def _optimize_final_module(self) -> None:
        """Leave it to what this is linked into."""

    def _finalize_final_module(self) -> None:
        """Do without machine code."""
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    """Makes LLVM code of a part, and makes it known to its callers without an address."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a part."""
        state.library = _PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        # numba tells functions apart by their entries, which must be built-in: any will do that
        # equals no other.
        stands_for_address = object().__reduce__
        lowered = state["cr"]
        state.targetctx.insert_user_function(stands_for_address, lowered.fndesc, [state.library])
        state["cr"] = lowered._replace(cfunc=stands_for_address)
        return True


class _PartCompiler(Compiler):
    """numba's compiler with that one step exchanged."""

    def define_pipelines(self) -> list[Any]:
        """Return the steps."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        position = next(i for i, (step, _) in enumerate(steps.passes) if step is NativeLowering)
        steps.passes[position] = (_PartLowering, "part lowering")
        steps.finalize()
        return [steps]


class _Locator(_CacheLocator):
    """Tells numba in which folder the machine code of a function is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator | None":
        """Return the folder of a function; None if it cannot be written."""
        folder = folder_for(py_func.__module__, Path(py_file))
        return cls(folder) if can_be_written(folder) else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return the same for all: the folder's name tells versions of the sources apart."""
        return ""

    def get_disambiguator(self) -> str:
        """Return the same for all: no two functions in a folder have the same name."""
        return "code"


class _Files(CompileResultCacheImpl):
    """Makes numba ask this locator alone where the files of a function are."""

    def __init__(self, function: Any) -> None:
        locators: list[Any] = [_Locator]
        self._locator_classes = locators
        super().__init__(function)


class _Cache(FunctionCache):
    """numba's cache of one function; trouble with its files means no cache, never an error."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the machine code for a signature; None when there is none that can be read."""
        try:
            with trigger_event(LOADING):
                return super().load_overload(sig, target_context)
        except Exception:
            # A damaged file may raise anything. An empty index takes its place.
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the machine code for a signature, and remove what has not been used for long."""
        with suppress(OSError):
            super().save_overload(sig, data)
            remove_older(Path(self.cache_path))
