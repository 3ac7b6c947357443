"""Compilation of integer kernels with numba, and their machine code, kept between processes.

A function that Python calls is ``compiled`` (or a ``kernel``, when it makes no arrays); one that
only such functions call is a ``part``. With ``NUMBA_DISABLE_JIT=1`` in the environment the same
functions run as plain Python and give the same answers, slowly; the tests compare the two.

Machine code is kept in ``spmilp`` in the folder that ``NUMBA_CACHE_DIR`` names, else in the user's
cache folder, and is never stale: its folder there has a hash in its name, of all sources in the
folders of the package that hold compiled functions. What these functions read, such as a constant,
has to stand there, too. Where nothing can be written each process compiles anew.
"""

import os
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, wraps
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec, TypeVar

from numba import njit
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.event import TimingListener, register, trigger_event
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import infer_global
from numba.misc.appdirs import user_cache_dir

P = ParamSpec("P")
R = TypeVar("R")

PACKAGE = Path(__file__).parent

FOLDERS_KEPT = 4
"""To switch between a few versions of the sources compiles nothing."""

FEW_STEPS = 5_000
"""Elementary steps that take no longer in Python than loading machine code."""

_STEPS: Counter[object] = Counter()
"""Steps that functions have taken in Python."""

LOADING = "spmilp:load"
"""Code comes from the cache: a kind of event beside numba's own for compiling."""

STOPWATCH = TimingListener()
register("numba:compile", STOPWATCH)
register(LOADING, STOPWATCH)


def seconds_of_compiling() -> float:
    """Return how long this process has compiled code, or loaded what was compiled before."""
    return float(STOPWATCH.duration) if STOPWATCH.done else 0.0


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls: cached, and without holding the interpreter lock."""
    return _with_cache(function)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that makes no arrays: as ``compiled``, but arrays are not counted.

    Counting the references to forty arrays at each call between functions can take most of the
    time. The caller in Python holds the arrays for the duration of the call.
    """
    # numba knows the option, its types do not.
    return _with_cache(function, _nrt=False)


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Let compiled functions call a function, which for Python stays as it is.

    It becomes machine code only inside the functions that Python calls. By default numba would also
    make machine code of it alone, with all that it calls: time that grows with the square of the
    depth of calls.
    """
    without_wrappers: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    body: Any = njit(pipeline_class=_PartCompiler, **without_wrappers)(function)
    if body is not function:
        infer_global(function, types.Dispatcher(body))
        # numba refers to the compiled function weakly: it lives as long as the Python function.
        vars(function)["compiled"] = body
    return function


def in_about(function: Callable[P, R], steps: int) -> Callable[P, R]:
    """Return what to call for a task of so many elementary steps.

    It is the function in Python as long as these are few, with those of earlier tasks, and machine
    code has not been loaded.
    """
    made = vars(function).get("__wrapped__")
    if made is None or made.signatures or _STEPS[made] + steps > FEW_STEPS:
        return function
    _STEPS[made] += steps
    in_python: Callable[P, R] = made.py_func
    return in_python


def _with_cache(function: Callable[P, R], **options: Any) -> Callable[P, R]:
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


@contextmanager
def signals_wait() -> Iterator[None]:
    """Let signals that would end the process wait for what must not be left half done.

    That is what takes milliseconds, or what leaves a library in pieces. In other threads than the
    main one nothing is interrupted in any case.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    known = {number: handler for number, handler in before.items() if handler is not None}
    for number in known:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in known.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


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
            cause: BaseException = error
            while isinstance(cause, SystemError) and cause.__cause__ is not None:
                cause = cause.__cause__
            raise cause from None

    return called


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


@cache
def _folder() -> Path:
    """Return the folder for machine code that is made from these very sources, made and in use."""
    sources = {file: file.read_bytes() for file in sorted(PACKAGE.rglob("*.py"))}
    imports = b"from spmilp.numba_layer import "
    hold = {file.parent for file, text in sources.items() if imports in text}
    digest = sha256()
    for file, text in sources.items():
        if file.parent in hold or file == Path(__file__):
            digest.update(f"{file.relative_to(PACKAGE)} {sha256(text).hexdigest()}\n".encode())
    folder = Path(
        os.environ.get("NUMBA_CACHE_DIR") or user_cache_dir(), PACKAGE.name, digest.hexdigest()[:16]
    )
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    return folder


class _Locator(_CacheLocator):
    """Tells numba in which folder the machine code of a function is."""

    def __init__(self, module: str) -> None:
        self._module = module

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator":
        """Return the locator of a function."""
        found = cls(py_func.__module__)
        found.ensure_cache_path()
        return found

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(_folder())

    def get_source_stamp(self) -> str:
        """Return the same for all: the folder's name tells versions of the sources apart."""
        return ""

    def get_disambiguator(self) -> str:
        """Return the module: no two functions in one have the same name."""
        return self._module


class _Files(CompileResultCacheImpl):
    """Makes numba ask this locator alone where the files of a function are."""

    _locator_classes = [_Locator]  # type: ignore[list-item]  # noqa: RUF012


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
            siblings = sorted(_folder().parent.iterdir(), key=lambda one: one.stat().st_mtime)
            for old in siblings[:-FOLDERS_KEPT]:
                shutil.rmtree(old, ignore_errors=True)
