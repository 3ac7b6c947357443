"""The whole problem as a mixed-integer program, solved through PuLP: the second opinion.

**The model.** A *stay* is a possible residency: there at cycle 0, written by a task, or brought by
a transfer; a slice has so many of the last kind in a memory. Times are continuous, and a binary
variable says of each two things that may share a core, a channel, a link or bytes which of them
has ended when the other one begins; a released row has a big-M from the bounds of its own
expressions, which come from the paths before and after each task and from the incumbent's
makespan. Shared hardware is modelled by minimal forbidden sets (:mod:`.resources`). Where room is
short, each two things in a memory lie apart in time or one below the other, at addresses of the
model (:mod:`.memory`), so that nothing is left to a packing afterwards.

**Every plan is in it.** No number of stays is enough for all plans. So the last stay of a slice in
a memory is *open* where a bound is wanted: it stands for itself and for all later ones too
(:class:`~spmilp.solvers.milp.stays.Shape`). What the optimum of that model uses late gets one more
stay, until a plan reaches the bound. ``optimal`` and ``infeasible`` rest on models with open stays
alone. The model leaves plans out only where an engine that can multicast has routes of different
rates; then nothing is claimed of it. Two freedoms that mean nothing on a real machine are left out
as in the brute force: a packed buffer that is there at cycle 0 lies at one address, and nothing is
in place of anything at a place in a DRAM tensor.

**What is believed of a solver.** Only the integers of its solution, rounded; all times and offsets
are computed from them exactly (:mod:`.repair`), the quantities are measured, and the checker
decides. Its bound is taken if it is proven (:mod:`.backend`).

    lookup        tables of the problem; where nothing has to give way
    windows       when a slice can be somewhere, and be of use there
    stays         which residencies there may be, what fills and what uses them
    linear, program
                  expressions and rows with whole coefficients
    variables, constraints, multicast, orders, resources, memory, congruence, strengthen, objective
                  the model, one family to a file
    model         all of them put together
    backend       PuLP and its solvers
    repair, decisions, extract, addresses
                  from a solution to a plan
    reasons       why there is no plan
    size, start, session, solver
                  one quantity of the objective after the other
    write         the model as a file
"""
