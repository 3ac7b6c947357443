"""Large-neighbourhood search: a plan as a partial order, windows of it solved by CP-SAT."""
