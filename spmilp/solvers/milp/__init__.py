"""The whole problem as a mixed-integer program, solved through PuLP: the second opinion.

**The model.** A candidate residency is there at cycle 0, written by a task, or filled by a
transfer; a slice has so many of the last kind in a memory. Times are continuous. A binary variable
says of each two activities that may share a core, a channel, a link or bytes which of them has
ended when the other one begins; a released row has a big-M from the bounds of its own expressions,
which come from the paths before and after each task and from the incumbent's makespan. Shared
hardware is modelled by minimal forbidden sets (:mod:`.resources`). In a memory that is not large
enough for everything, each two residencies lie apart in time or one below the other, at addresses
of the model (:mod:`.address_model`), so that every solution has addresses.

**Every plan is in it.** No number of candidates is enough for all plans. So the last candidate of a
slice in a memory is *open* where a bound is wanted: it stands for itself and for all later ones
(:class:`~spmilp.solvers.milp.structure.Shape`). A slice that the optimum of that model uses late
gets one more candidate, until a plan reaches the bound. ``optimal`` and ``infeasible`` rest on
models with open candidates alone. The model leaves plans out only where an engine that can
multicast has routes of different rates; then nothing is claimed of it. Two freedoms that mean
nothing on a real machine are left out as in the brute force: a packed buffer that is there at cycle
0 lies at one address, and nothing is in place of anything at a place in a DRAM tensor.

**Trust in a solver.** Only the integers of its solution are taken, rounded; all times are computed
from them exactly (:mod:`.solution`), the addresses are packed for these times, the quantities are
measured, and the checker decides. Its bound is taken if it is proven (:mod:`.backend`).

``tables``
    Tables of the problem; when a slice can be somewhere, and be of use there.
``structure``
    The candidate residencies, with everything that can fill and use them.
``program``
    Expressions and rows with whole coefficients.
``variables``, ``constraints``, ``resources``, ``address_model``, ``congruence``, ``strengthen``,
``objective``
    The model, one family to a file; ``model`` puts them together.
``backend``, ``worker``, ``process``, ``messages``
    PuLP and its solvers, in a process of their own, and what is sent to it and back.
``solution``
    From a solution to decisions; :mod:`spmilp.solvers.formulation` makes plans of them.
``options``, ``solver``, ``search``
    One quantity of the objective after the other; or why there is no plan; or the model as a file.
"""
