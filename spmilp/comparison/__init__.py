"""Solvers side by side on the same problems: runs, tables of them, performance profiles."""
