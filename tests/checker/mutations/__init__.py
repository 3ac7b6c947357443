"""Kinds of damage to a plan, by name, and what two checkers say of it.

mutant      a changed plan; the table of kinds
kinds       the kinds
subjects    plans to be changed, of all solvers and many machines
verdicts    what the two checkers say
"""

from tests.checker.mutations import kinds
from tests.checker.mutations.mutant import KINDS

__all__ = ["KINDS", "kinds"]
