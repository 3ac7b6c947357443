"""Published systems as policies on the same problems, each named after its source.

What a policy shares with the solvers (formulation, kernels, shortening of times) it takes from
there; what its paper leaves open is stated in its docstring.
"""
