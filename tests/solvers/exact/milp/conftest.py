"""OR-Tools comes before PuLP: the other way round PuLP loads highspy, which bars OR-Tools."""

from importlib import import_module

import_module("ortools.sat.python.cp_model")
