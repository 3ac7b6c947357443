"""One core: a program for each order of its tasks, indexed by position; orders one by one.

Started in an order, tasks cut the time of a plan into *intervals*: the gap before the first run,
the first run, the next gap, and so on to the gap behind the last one. Gaps have lengths, runs the
cycles of their tasks. Interval ``i`` ends at *instant* ``i``: right after the start of a run, where
a gap ends, or right before its end. What is inside the core's memory at an instant is a set of 0/1
states, so no time needs a big number to be compared with another. What remains of the first tasks
of an order, when the others have no position, is that everything else takes place in one last
interval of unknown length, in any order and in memory without limit.

**Proposition.** No valid plan on one core that runs its tasks in an order, or the first of them,
has a makespan below the minimum of the order's program.

**Proof.** Take such a plan, and end each residency with its last use, which changes neither its
validity nor its makespan. Its intervals have the lengths of the program. Let a slice be *held* at
an instant if any residency of it exists inside then, and look at a stretch of instants at which it
is held without a break.

- *States.* ``inside`` is 1 from the first instant of the stretch at which a residency of the slice
  is valid, and so wherever a task or a transfer uses it. That residency was there at cycle 0,
  written right before, or copied: then follow the copies back inside, as long as each was valid
  only after the instant before, to a transfer from outside, or from the buffer of which the slice
  is a part. This one transfer is the *load* or *copy* of the stretch: it ends in the interval
  before that instant, and ``flies`` at the instants at which it is under way. The slice is held
  there, so no byte is counted twice, and those of one residency at each instant at most. All
  stretches are apart, so their transfers never share an interval, and the rows on cycles hold:
  each takes the cycles of the fastest engine at least, and all of an interval that it crosses.
- *Sources.* A copy is under way while its buffer is inside. If it is over within one interval, its
  buffer is inside before or after, or written between, or comes and goes within the interval: then
  its own transfer counts as a load after which nothing is held. (Were the buffer brought in again
  at once, it is held without a break, and may count as inside.)
- *Stores.* What is loaded and was not outside at first has been carried out before. Of the chain of
  transfers from its writer to the load take the first one that leads outside, and of each slice the
  one of these that ends first: the *store*. Until it begins, the chain lies inside. The same holds
  of an output that must end outside: at each instant the last residency of the chain that is valid
  lies inside, or the store is over.
- *In place.* Result and operand share the bytes of the smaller one while the task runs. The operand
  ends with the task, so whatever is held of it afterwards has come anew, or is another residency
  (``beside``), for which its bytes are then there besides.
- *Room, links, channels.* Distinct residencies that exist at an instant share no bytes, in blocks
  of the memory's alignment. The transfers counted are among the plan's, and links and channels have
  room for all of these, at each instant and so over each interval.
- *No position yet.* A task reads in the last interval what was inside before it, what has come
  since, or what was written since. It runs for its cycles, all others do too, and the last of them
  stores what it must after its end.

The program may have solutions that are no plans: addresses, reserved ranges between them and room
between two instants are not in it, nor are the ways between memories outside. So its minimum is a
bound, and what it decides becomes a plan only if addresses are found.

HiGHS states bounds in floating point; they are rounded as those of the other formulation are, and
one that a valid plan is below refutes the solver, of which nothing is believed then.

``tables``
    What the programs need of a problem, and which problems have them.
``variables``, ``rows``, ``model``
    The program of an order, or of the first tasks of orders.
``search``
    Best first over beginnings of orders.
``timing``
    From a solution to exact times.
``solve``
    All of it within the limits of a solve.
"""
