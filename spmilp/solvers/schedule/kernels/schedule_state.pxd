# Structs with the fields of the tables and tuples of schedule_state.py, in the same order.

from spmilp.compiled cimport whole
from spmilp.solvers.schedule.kernels.timeline cimport CTimeline

ctypedef struct Task:
    long long reads_from
    long long reads_to
    long long writes_from
    long long writes_to
    long long before_from
    long long before_to
    long long scratch_bytes
    long long tail
    long long position
    long long core
    long long start
    long long end
    long long placed
    long long scratch

ctypedef struct Read:
    long long slice
    long long served_by
    long long reader

ctypedef struct Write:
    long long buffer
    long long overwrites_from
    long long overwrites_to
    long long held_by

ctypedef struct SliceRow:
    long long buffer
    long long bytes
    long long packed
    long long from_parent
    long long offset_in_parent
    long long at_place
    long long offset_at_place
    long long readers_from
    long long readers_to
    long long first
    long long next_reader

ctypedef struct BufferRow:
    long long begins
    long long ends
    long long parts_from
    long long parts_to
    long long home
    long long in_dram

ctypedef struct CoreRow:
    long long kind
    long long memory
    long long free

ctypedef struct MemoryRow:
    long long alignment
    long long is_dram
    long long parent
    long long aside
    long long settled
    long long loads_saved
    long long counted_for

ctypedef struct Pair:
    long long options_from
    long long options_to
    long long links_from
    long long links_to

ctypedef struct Option:
    long long engine
    long long setup
    long long latency
    long long rate

ctypedef struct Resource:
    long long capacity
    long long longest
    long long dimensions
    long long shapes
    long long congruence
    long long multicast
    long long pipelined

ctypedef struct ResidencyRow:
    long long slice
    long long memory
    long long offset
    long long bytes
    long long start
    long long valid
    long long end
    long long filled_by_task
    long long filled_by_transfer
    long long overwrites
    long long alive
    long long following
    long long pinned

ctypedef struct TransferRow:
    long long slice
    long long source
    long long destination
    long long engine
    long long start
    long long sent
    long long end

ctypedef struct Price:
    long long free_from
    double cost
    long long store
    long long in_turn
    long long is_chosen

ctypedef struct Block:
    long long start
    long long holder
    long long free_from

ctypedef struct Space:
    Block* blocks
    long long* length
    long long most

ctypedef struct CWeights:
    double evict
    double horizon
    double early
    double idle
    double dram

ctypedef struct TableRows:
    long long buffers
    long long cores
    long long kinds
    long long memories
    long long residencies
    long long transfers

ctypedef struct State:
    Task* tasks
    long long* cycles
    Read* reads
    Write* writes
    SliceRow* slices
    long long* readers
    BufferRow* buffers
    long long* lists
    CoreRow* cores
    MemoryRow* memories
    long long* pair_at
    Pair* pairs
    Option* options
    long long* links
    Resource* resources
    ResidencyRow* residencies
    TransferRow* transfers
    Price* prices
    long long* counts
    Space space
    CTimeline timeline
    long long scale
    long long reach
    long long* cast_links
    long long is_open
    long long* chosen
    CWeights weights
    TableRows rows

cdef extern from *:
    """
    enum {
        SPMILP_DONE, SPMILP_RESIDENCIES_FULL, SPMILP_TRANSFERS_FULL, SPMILP_TIMELINE_FULL,
        SPMILP_BLOCKS_FULL, SPMILP_DOES_NOT_FIT, SPMILP_UNREACHABLE, SPMILP_TOO_LATE
    };
    enum {
        SPMILP_COUNT_RESIDENCIES, SPMILP_COUNT_TRANSFERS, SPMILP_COUNT_FAILED_TASK,
        SPMILP_COUNT_FAILED_SLICE, SPMILP_COUNT_FAILED_MEMORY, SPMILP_COUNT_LATEST
    };
    #define SPMILP_FREE (-1LL)
    #define SPMILP_RESERVED (-2LL)
    """
    const long long DONE "SPMILP_DONE"
    const long long RESIDENCIES_FULL "SPMILP_RESIDENCIES_FULL"
    const long long TRANSFERS_FULL "SPMILP_TRANSFERS_FULL"
    const long long TIMELINE_FULL "SPMILP_TIMELINE_FULL"
    const long long BLOCKS_FULL "SPMILP_BLOCKS_FULL"
    const long long DOES_NOT_FIT "SPMILP_DOES_NOT_FIT"
    const long long UNREACHABLE "SPMILP_UNREACHABLE"
    const long long TOO_LATE "SPMILP_TOO_LATE"
    const long long COUNT_RESIDENCIES "SPMILP_COUNT_RESIDENCIES"
    const long long COUNT_TRANSFERS "SPMILP_COUNT_TRANSFERS"
    const long long COUNT_FAILED_TASK "SPMILP_COUNT_FAILED_TASK"
    const long long COUNT_FAILED_SLICE "SPMILP_COUNT_FAILED_SLICE"
    const long long COUNT_FAILED_MEMORY "SPMILP_COUNT_FAILED_MEMORY"
    const long long COUNT_LATEST "SPMILP_COUNT_LATEST"
    const long long FREE "SPMILP_FREE"
    const long long RESERVED "SPMILP_RESERVED"
    State* state_at "SPMILP_POINTER"(size_t address) noexcept nogil
    Task* task_at "SPMILP_AT"(Task* table, long long index) noexcept nogil
    Read* read_at "SPMILP_AT"(Read* table, long long index) noexcept nogil
    Write* write_at "SPMILP_AT"(Write* table, long long index) noexcept nogil
    SliceRow* slice_at "SPMILP_AT"(SliceRow* table, long long index) noexcept nogil
    BufferRow* buffer_at "SPMILP_AT"(BufferRow* table, long long index) noexcept nogil
    CoreRow* core_at "SPMILP_AT"(CoreRow* table, long long index) noexcept nogil
    MemoryRow* memory_at "SPMILP_AT"(MemoryRow* table, long long index) noexcept nogil
    Pair* pair_row_at "SPMILP_AT"(Pair* table, long long index) noexcept nogil
    Option* option_at "SPMILP_AT"(Option* table, long long index) noexcept nogil
    Resource* resource_at "SPMILP_AT"(Resource* table, long long index) noexcept nogil
    ResidencyRow* residency_at "SPMILP_AT"(ResidencyRow* table, long long index) noexcept nogil
    TransferRow* transfer_at "SPMILP_AT"(TransferRow* table, long long index) noexcept nogil
    Price* price_at "SPMILP_AT"(Price* table, long long index) noexcept nogil
    Block* block_row_at "SPMILP_AT"(Block* table, long long index) noexcept nogil
    Space* space_in "&"(Space space) noexcept nogil
    CTimeline* timeline_in "&"(CTimeline timeline) noexcept nogil
