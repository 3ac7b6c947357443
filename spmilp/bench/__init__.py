"""The benchmark: suites of problems, solvers side by side, tables."""
