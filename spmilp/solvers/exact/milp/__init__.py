"""The whole problem as a mixed-integer program, solved through PuLP: a second opinion.

**The model** is the exact one of :mod:`spmilp.solvers.exact.formulation`, written as rows
(:mod:`.rows`). Times are continuous. A 0/1 variable says of each two activities that may share a
core, a channel, a link or bytes which of them has ended when the other one begins; a released row
has a big-M from the bounds of its own expressions, which come from the paths before and after each
task and from the incumbent's makespan.

**Every plan is in it.** No number of candidates is enough for all plans. So the last candidate of a
slice in a memory is *open* where a bound is wanted: it stands for itself and for all later ones
(:class:`~spmilp.solvers.exact.formulation.candidates.Lifecycle`). A slice that the optimum of that
model uses late gets one more candidate, and items that have no addresses get them into the model,
until a plan reaches the bound. ``optimal`` and ``infeasible`` rest on models with open candidates
alone.

**Trust in a solver.** Only the 0/1 variables of its solution are taken, rounded; all times are
computed from them exactly, the addresses are packed for these times, the quantities are measured,
and the checker decides. Its bound is taken if it is proven (:mod:`.backend`).

``program``
    Expressions and rows with whole coefficients; limits and outcome of a run.
``rows``
    A model of CP-SAT's as such a program, and a solution of it back again.
``backend``, ``process``
    PuLP and its solvers, in a process of their own.
``solver``
    One quantity of the objective after the other; or the model as a file.
``solution``
    A solution of such a file, by whatever solver, as a plan.
"""
