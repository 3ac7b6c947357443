"""Kinds of damage to a plan, by name, and what two checkers say of it.

mutant                        a changed plan; the table of kinds
of_tasks, of_addresses, of_residencies, of_transfers, of_files
                              the kinds
subjects                      plans to be changed, of all solvers and many machines
verdicts                      what the two checkers say
"""

from tests.checker.mutations import of_addresses, of_files, of_residencies, of_tasks, of_transfers
from tests.checker.mutations.mutant import KINDS

__all__ = ["KINDS", "of_addresses", "of_files", "of_residencies", "of_tasks", "of_transfers"]
