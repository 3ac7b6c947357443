"""Compile the kernels, where there is a C compiler; without one they run as Python."""

from Cython.Build import cythonize
from setuptools import Extension, setup

KERNELS = (
    "spmilp.compiled",
    "spmilp.bounds.cuts",
    "spmilp.packing.kernel",
    "spmilp.packing.outlines",
    "spmilp.simulator.sharing",
    "spmilp.solvers.justify.dram_bypass",
    "spmilp.solvers.justify.passes",
    "spmilp.solvers.justify.profiles",
    "spmilp.solvers.modulo.reservations",
    "spmilp.solvers.schedule.kernels.eviction",
    "spmilp.solvers.schedule.kernels.generate",
    "spmilp.solvers.schedule.kernels.memories",
    "spmilp.solvers.schedule.kernels.timeline",
    "spmilp.solvers.schedule.kernels.transfers",
)
DIRECTIVES = {"language_level": 3, "infer_types": True, "annotation_typing": False}
# Products and sums are rounded one by one, as in Python, so that all machines decide alike.
FLAGS = ["-O3", "-g0", "-ffp-contract=off"]
# One wheel for Python 3.11 and all that come later.
LIMITED = {"define_macros": [("Py_LIMITED_API", "0x030B0000")], "py_limited_api": True}

extensions = cythonize(
    [
        Extension(name, [name.replace(".", "/") + ".py"], extra_compile_args=FLAGS, **LIMITED)
        for name in KERNELS
    ],
    compiler_directives=DIRECTIVES,
    build_dir="build/cython",
)
for one in extensions:
    one.optional = True  # cythonize leaves it out

setup(
    ext_modules=extensions,
    options={"bdist_wheel": {"py_limited_api": "cp311"}, "build_ext": {"parallel": True}},
)
