"""Kinds of damage to a plan: about a hundred, by name.

mutant                        a changed plan; the table of kinds
of_tasks, of_residencies, of_transfers, of_files
                              the kinds
subjects                      plans to be changed, of all solvers and many machines
verdicts                      what the two checkers say
"""

from tests.checker.mutations import of_files, of_residencies, of_tasks, of_transfers
from tests.checker.mutations.mutant import KINDS

__all__ = ["KINDS", "of_files", "of_residencies", "of_tasks", "of_transfers"]
