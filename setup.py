"""Compile the kernels, where there is a C compiler; without one they run as Python."""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = (
    "spmilp.compiled",
    "spmilp.solvers.justify.fewer_transfers",
    "spmilp.solvers.justify.passes",
    "spmilp.solvers.justify.profiles",
    "spmilp.solvers.schedule.kernels.timeline",
)
DIRECTIVES = {"language_level": 3, "infer_types": True, "annotation_typing": False}
# One wheel for Python 3.11 and all that come later.
LIMITED = {"define_macros": [("Py_LIMITED_API", "0x030B0000")], "py_limited_api": True}

extensions = cythonize(
    [
        Extension(
            name, [name.replace(".", "/") + ".py"], extra_compile_args=["-O3", "-g0"], **LIMITED
        )
        for name in KERNELS
    ],
    compiler_directives=DIRECTIVES,
    build_dir="build/cython",
)
for one in extensions:
    one.optional = True  # cythonize leaves it out

setup(ext_modules=extensions, options={"bdist_wheel": {"py_limited_api": "cp311"}})
