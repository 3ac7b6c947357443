"""An exhaustive search for the best plans of tiny problems: the oracle for the solvers.

It shares nothing with them: it has its own timing, its own memories, and its own statement of what
a transfer can be. It knows the machine's routes and the strides of a copy, which define the meaning
of a problem. It covers every valid plan of ``docs/format.md``: reloads and spills, transfers
between any two memories an engine serves (copies inside one memory included), multicast, remote
reads, slices served by their own residency or their parent's, pairs in place, congruent addresses.
Only two freedoms of the format are left out, which mean nothing on a real machine: a packed buffer
that is there at cycle 0 lies at one address, not at several; and nothing is in place of anything at
a place in a DRAM tensor.

**The candidates are finitely many, and an optimum is among them.**

*Starts.* Take a valid plan in which no residency lasts longer than its last use. A task or transfer
that starts at ``s > 0`` may start at ``s - 1``, unless something blocks it: a task that ends at
``s``, a transfer that has sent or arrived at ``s``, or one that has sent at ``s`` plus the set-up,
if both are on a link. For whatever else runs or lies in a memory at ``s - 1`` does so at ``s`` too,
so that cores, channels, links and bytes suffice; and what is valid at ``s`` is so at ``s - 1``.
Neither makespan nor traffic, energy or peak rises. So among the best plans, in one with the least
sum of starts something blocks whatever starts after 0. What started before ``s`` and blocks says
when that may be: these are the moments for which the search waits.

Let all transfers take ``q`` cycles at the least until they have sent. One that starts at ``s`` or
later blocks only if it sends while the other sets up. Take what starts at ``s``, what blocks that
and starts at ``s`` or later, and so on. Not all of it may start a cycle sooner, so one of these is
blocked by what started before ``s``. From one to what blocks it ``start + set-up - q`` never rises
(``start``, if that is more). So that moment is at most the set-up less ``q`` after ``s``: the
search tries starts so soon before one.

*Transfers.* Among those plans, take one with the fewest transfers. Each of its transfers then
brings something that is used, to each of its destinations; and of two valid copies of a slice in
one memory only one serves anything that starts later, unless some task may write in place of one.
The search gives up a path as soon as a transfer on it turns out to be redundant.

*Addresses.* Lower the residencies of a valid plan one by one as long as one can go down by the
least step that keeps alignment and residue. It stays valid, and its peak does not rise. In the end
each (with those in place of each other, which move together) has below it, at less than that step,
address 0, the end of a reserved range, of a tensor or of another residency. So only addresses are
tried that are reached from 0 or the end of a reserved range by adding sizes and rounding up. What
is pinned to an address stays there, and others may lie above it. Where all that could ever lie in a
memory fits side by side, everything has an address of its own.

*Eviction.* A residency may end after its last use, and letting it stay costs nothing but bytes. So
contents leave a memory only when something is put on their bytes.

*The end.* A state holds the tasks that have run, what runs and for how long yet, and the contents
of memories, times counted from now, with *all* layouts that the past allows: no decision about time
depends on an address chosen too early. There are finitely many states, and the search meets none of
them twice at the same cost. If it ends without a complete plan there is none.

``rules``
    What the machine can do with the problem, and where things can lie.
``search``
    The states and what can follow each of them, the cheapest first.
``solver``
    One quantity of the objective after the other; from the path found to a plan.
``periods``
    The least period of a stream, where data has ample room: another search.
"""
