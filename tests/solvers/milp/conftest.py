"""OR-Tools comes before PuLP: the other way round PuLP loads highspy, which bars OR-Tools."""

import ortools.sat.python.cp_model  # noqa: F401
