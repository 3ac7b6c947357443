"""An exhaustive search for the best plans of tiny problems: the oracle for the other solvers.

It shares nothing with them: it has its own timing and its own memories. It knows the machine's
routes and the strides of a copy, which define the meaning of a problem. It covers every valid plan
of ``docs/format.md``: reloads and spills, transfers between any two memories an engine serves
(copies inside one memory included), multicast, remote reads, slices served by their own residency
or their parent's, pairs in place, congruent addresses. Only two freedoms of the format are left
out, which mean nothing on a real machine: a packed buffer that is there at cycle 0 lies at one
address, not at several; and nothing is in place of anything at a place in a DRAM tensor.

**The candidates are finitely many, and an optimum is among them.**

*Starts.* Take a valid plan in which no residency lasts longer than its last use. If a task or
transfer starts at a cycle ``s > 0`` at which no other one ends, it may start at ``s - 1``: whatever
runs or lies in a memory at ``s - 1`` does so at ``s`` too, so that cores, channels, links and bytes
suffice; and what has ended at ``s`` has ended at ``s - 1``. Neither makespan nor traffic, energy or
peak rises. Among the best plans, one with the least sum of starts therefore starts everything at 0
or at the end of something. So waiting for the next end is the only delay that the search tries.

*Transfers.* Among those plans, take one with the fewest transfers. Each of its transfers then
brings something that is used, to each of its destinations; and of two valid copies of a slice in
one memory only one serves anything that starts later, unless some task may write in place of one.
The search gives up a path as soon as a transfer on it turns out to be redundant.

*Addresses.* :mod:`.capacity` shows that finitely many addresses are enough, and that contents need
to leave only when something is put on their bytes. A state of the search holds *all* layouts that
its past allows, so that no decision about time depends on an address chosen too early.

*The end.* A state holds the tasks that have run, what runs and for how long yet, and the contents
of memories, times counted from now. There are finitely many, and the search meets none of them
twice at the same cost. If it ends without a complete plan there is none.

``tables``, ``transfer_options``
    Tables of the problem; the transfers that the machine can make.
``state``, ``contents``, ``capacity``
    The state at one cycle; the contents of a memory while a step changes them, and which of them
    are still wanted; where they can lie.
``task_starts``, ``transfer_starts``, ``advance``
    The successors of a state: a task or a transfer starts, time passes.
``lower_bounds``
    Lower bounds on the cost to go.
``search``
    A*, the most promising state first.
``reconstruct``, ``addresses``
    From the path found to a plan.
``solver``
    One quantity of the objective after the other; or why there is no plan.
"""
