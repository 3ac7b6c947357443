"""Compilation of integer kernels with numba.

A function that Python calls is ``compiled`` (or a ``kernel``, when it makes no arrays); one that
only compiled functions call is a ``part``. With ``NUMBA_DISABLE_JIT=1`` in the environment the same
functions run as plain Python and give the same answers, slowly; the tests compare the two.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import infer_global

from spmilp.code_cache import keep_between_processes

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that Python calls: cached, and without holding the interpreter lock."""
    return _with_cache(function, {})


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function that makes no arrays: as ``compiled``, but arrays are not counted.

    Counting the references to forty arrays at each call between functions can take most of the
    time. The caller in Python holds the arrays for the duration of the call.
    """
    # numba knows the option, its types do not.
    return _with_cache(function, {"_nrt": False})


def part(function: Callable[P, R]) -> Callable[P, R]:
    """Let compiled functions call a function, which for Python stays as it is.

    It becomes machine code only inside the functions that Python calls. By default numba would also
    make machine code of it alone, with all that it calls: time that grows with the square of the
    depth of calls.
    """
    options: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    body = njit(pipeline_class=_PartCompiler, **options)(function)
    if body is not function:
        infer_global(function, types.Dispatcher(body))
        # numba refers to the compiled function weakly: it lives as long as the Python function.
        vars(function)["compiled"] = body
    return function


def _with_cache(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    made: Any = njit(nogil=True, **options)(function)
    if made is not function:
        keep_between_processes(made, function)
    result: Callable[P, R] = made
    return result


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
