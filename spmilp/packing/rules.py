"""Switches of the search, one per pruning, each with the reason why it loses no solution.

Call a packing of unplaced items on top of placed ones *settled* when, among all such packings
inside the capacity, the sum of ``units * offset`` is least. If there is a packing, there is a
settled one, and in it no item can be moved down with the others left where they are: each lies at
0 or directly on an item it conflicts with, rounded up to its alignment and past obstacles. So,
when the items of a settled packing are sorted by offset, each lies at the lowest offset that the
items before it allow (``State.low``). The search places items one at a time at this offset, at
each step the open item that can lie lowest first; it reaches every settled packing.

A *bar* forbids an item its present lowest offset until it is lifted. Take, of all settled packings
that keep a node's bars and bound, the one that the search would reach first. The rules below never
cut its path off, so a node that holds one succeeds. (With packings of part of the items on top of
placed ones that part of a settled packing is settled again, so the argument holds at every node.)

*An item that was tried at a node and failed is barred for the node's later choices.* A settled
packing that has it at this offset next to a later choice of equal or higher offset has it among
the items that come next, and was looked for when it was tried. This is how the search knows what
it tried and has no switch.
"""

CANONICAL = 1
"""Offsets never decrease from one placed item to the next.

A settled packing sorted by offset is such a sequence.
"""

DOMINANCE = 2
"""No item is placed at or above the lowest possible top of an unplaced item ``u``.

All later items of the sub-problem would lie at or above that top, so ``u`` could be moved down to
its lowest offset: the packing would not be settled.
"""

CUT_OFF = 4
"""No item is placed so high that some section's remaining units no longer fit above it.

All later items lie at or above the next one, and those of one section lie side by side.
"""

FLOORS = 8
"""After each placement every section of the sub-problem is looked at, not only the item's own.

A section's remaining units must fit above the least offset that its unplaced items can have. An
item may be lifted in sections it does not share with the one just placed.
"""

MEMO = 16
"""A state that failed once is not searched again under the same or a higher bound.

What can follow depends on the unplaced items, the lowest offset of each, their bars and the least
offset allowed by ``CANONICAL``; a higher bound allows a subset. The order of preference does not
matter, so runs share what failed: wherever the state is met again, its bars are items that were
tried and failed there too, and a packing that one of them excludes was looked for. States are
compared by 128-bit hashes: among a billion states the chance that any two collide is below 1e-20.
"""

TWINS = 32
"""With an item that was tried and failed, the items that nothing tells apart from it are barred.

Exchanging two of them in a settled packing gives a settled packing, which was looked for.
"""

STACKED = 64
"""Of two items that live in the same sections, the barred one does not go directly on the other.

Exchanging the two leaves all others where they are and changes the sum by ``units * units' -
units' * units = 0``: the result is settled too, and has the barred item at the offset that was
tried. (The exchange of W. E. Smith, 1956, doi 10.1002/nav.3800030106.)
"""

SPLIT = 128
"""Where no unplaced item spans a cut in time, the two sides are searched apart.

Neither side restricts the other, so when one fails no other packing of the first can help.
"""

LOOKAHEAD = 256
"""An item that cannot have its lowest offset counts as lying higher when sections are looked at.

It is barred or below the bound of ``CANONICAL``. In a settled packing it then lies on an item that
is yet to be placed, at or above the bound, thus above it by at least what unplaced items raise
others by (``Tables.lift``). A section's next item lies on one that does not live there, which would
itself be the next: where no such item can lie low enough, it is not the next one.
"""

ALL_RULES = 511

NAMES = {
    "canonical": CANONICAL,
    "dominance": DOMINANCE,
    "cut_off": CUT_OFF,
    "floors": FLOORS,
    "memo": MEMO,
    "twins": TWINS,
    "stacked": STACKED,
    "split": SPLIT,
    "lookahead": LOOKAHEAD,
}

# Positions in State.counters.
DEPTH, AGENDA_HEAD, POOL, TRAIL, NODES, STARTED = range(6)
COUNTERS = 6

# Return values of the search.
PACKED, EXHAUSTED, PAUSED = range(3)
