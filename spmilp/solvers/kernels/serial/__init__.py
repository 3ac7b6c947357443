"""Serial schedule generation that keeps every scratchpad's real contents, addresses included.

Tasks are placed one after another in a given order. For each one the slices that it reads are
brought into the core's memory, what is needed last is evicted, bytes are reserved for what it
writes, and it starts as early as all that allows. Every decision is final and has its cycles and
its addresses at once, so that the next task can always wait for what came before: there is no
deadlock, and a plan comes out whenever each task's working set fits.

run          one run on tables that grow until they are large enough
generate     the scheme itself, task by task
fetch        loads of what a task reads, in its turn or long before; stores of outputs
eviction     which addresses to clear, and how
residencies  which tasks need a residency, and when next
multicast    one transfer for several memories; loads to one that is no bottleneck
transfers    engine, channel and cycles of one transfer; the core of a task that has none
stopped      what kept it from a plan, as data and in words
extract      tables in, the value of the schedule and a plan in the project's own terms out
"""
