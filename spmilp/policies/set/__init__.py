"""SET: layers side by side on parts of the chip, by a tree of cuts and simulated annealing.

Cai et al., "Inter-layer Scheduling Space Definition and Exploration for Tiled Accelerators", ISCA
2023, doi 10.1145/3579371.3589048. Its paper could not be read; its tree and its schemes (layers one
after another; layers in a pipeline) are known here from descriptions and from measurements with its
public code, of which nothing is used.

What is taken: the tree whose leaves are layers, whose cuts in time let their children have all of
their cores one after another, and whose cuts in space give each child cores of its own, as many
as its work asks for; sub-batches, by which the children of a cut take turns; simulated annealing
over trees, from layers one after another and from pipelines of groups of them.

What it leaves open, or has otherwise, and what is done here:

- A layer is an operator, its sub-batches are runs of its tiles, whatever these are cut along.
- The tree gives cores and an order; transfers, addresses and what is evicted are found by
  serial schedule generation. Its value is that of this schedule, not of a formula.
- The objective is the problem's; there it is energy times delay.
- Its moves could not be read; the ones here are in :mod:`.moves`.

Modules: :mod:`.tree`, :mod:`.moves`, :mod:`.solver`.

Not taken: machines that stage through more than one memory, and tasks that find no room beside what
must stay (the reason names the task).
"""
