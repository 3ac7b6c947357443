"""Serial schedule generation that keeps every scratchpad's real contents, addresses included.

Tasks are placed one after another in a given order. For each one the slices that it reads are
brought into the core's memory, what is needed last is evicted, bytes are reserved for what it
writes, and it starts as early as all that allows. Every decision is final and has its cycles and
its addresses at once, so that the next task can always wait for what came before: there is no
deadlock, and a plan comes out whenever each task's working set fits.

run          one run on tables that grow until they are large enough
generate     the scheme itself, task by task
open_core    the core of a task for which none has been chosen
fetch        loads of what a task reads, stores of outputs
prefetch     bytes set aside for a load long before its reader's turn
eviction     which addresses to clear, and how
residencies  which tasks need a residency, and when next
transfers    engine, channel and cycles of one transfer
score        the value of a finished schedule
extract      tables in, plan in the project's own terms out
"""
