"""The columns of every table. A change here is a change of the format: see ``VERSION``."""

from spmilp.export.tables.table import ZERO_FILL, Column, Layout, Width

VERSION = (1, 0)
"""Major and minor version of all layouts together."""


def _layout(code: int, table: str, struct: str, says: str, *columns: str) -> Layout:
    """Return a layout from columns written ``width name: meaning``."""
    found = []
    for column in columns:
        head, _, meaning = column.partition(": ")
        width, name = head.split()
        found.append(Column(name, _WIDTHS[width], meaning))
    return Layout(code=code, table=table, struct=struct, says=says, columns=tuple(found))


_WIDTHS: dict[str, Width] = {"u64": "u64", "u32": "u32", "i32": "i32"}
_SPARE = f"u32 {ZERO_FILL}: 0"

SUMMARY = _layout(
    *(1, "summary", "summary", "One row: the plan as a whole"),
    "u64 makespan: cycles of the plan; waits, not cycles, order the commands",
    "u64 workspace: bytes of packed operands that the largest program needs; 0 without a model",
    "u64 frequency: cycles per second; 0 where unknown",
    "u32 events: events of the command lists, all 0 at the start",
    "u32 scheme: what a wait does: SCHEME_COUNTERS or SCHEME_SEMAPHORES",
)
MEMORIES = _layout(
    *(2, "memories", "memory", "Memories of the machine"),
    "u64 size: bytes; 0 for a DRAM without limit",
    "u64 used: end of the highest byte that the plan touches",
    "u32 kind: MEMORY_DRAM, MEMORY_SHARED or MEMORY_SPM",
    "u32 alignment: of the base address and of all offsets, a power of two",
    "u32 name: position in texts",
    _SPARE,
)
CORES = _layout(
    *(3, "cores", "core", "Cores of the machine"),
    "u32 memory: the memory that its tasks work in",
    "u32 kind: number of its kind of core",
    "u32 list: its command list",
    "u32 name: position in texts",
)
ENGINES = _layout(
    *(4, "engines", "engine", "DMA engines of the machine"),
    "u32 owner: the memory at one end of each transfer; NONE for a central engine",
    "u32 channels: transfers at one time",
    "u32 list: command list of its first channel; the others follow",
    "u32 name: position in texts",
)
TENSORS = _layout(
    *(5, "tensors", "tensor", "Tensors that lie in DRAM from beginning to end, row major"),
    "u64 address: of the first byte in its memory",
    "u64 bytes: size",
    "u32 memory: a DRAM",
    "u32 kind: BUFFER_INPUT, BUFFER_WEIGHT or BUFFER_OUTPUT",
    "u32 item: bytes of an element",
    "u32 rank: axes, in the order in which they lie",
    "u32 shape: position of its lengths in words",
    "u32 name: position in texts",
)
BUFFERS = _layout(
    *(6, "buffers", "buffer", "Tiles of tensors, each written once as a whole"),
    "u64 bytes: size",
    "u32 kind: BUFFER_INPUT, _WEIGHT, _INTERMEDIATE, _PARTIAL or _OUTPUT",
    "u32 item: bytes of an element",
    "u32 rank: axes, in the order in which they lie",
    "u32 shape: position of its lengths in words",
    "u32 name: position in texts",
    _SPARE,
)
RESIDENCIES = _layout(
    *(7, "residencies", "residency", "Residencies: what lies where, from when to when"),
    "u64 offset: of the first byte in the memory",
    "u64 bytes: size, packed",
    "u64 start: planned cycle",
    "u64 end: planned cycle, exclusive",
    "u32 memory: where it lies",
    "u32 buffer: what it is a part of; NONE for scratch",
    "u32 kind: BUFFER_..., or BUFFER_SCRATCH",
    "u32 filled_by: FILLED_BY_NOTHING, FILLED_BY_TASK or FILLED_BY_TRANSFER",
    "u32 filler: the task or transfer; NONE for neither",
    "u32 at_place: 1 if it lies in a DRAM tensor, at the tensor's strides",
)
OPERANDS = _layout(
    *(8, "operands", "operand", "What tasks read and write, in the order in which it lies"),
    "u64 offset: of the first byte in the memory",
    "u32 memory: where it lies",
    "u32 residency: the residency",
    "u32 buffer: what it is a part of",
    "u32 item: bytes of an element",
    "u32 rank: axes",
    "u32 extent: position of the elements along each axis in words",
    "u32 strides: position of the bytes between neighbours of each axis in words",
    _SPARE,
)
TASKS = _layout(
    *(9, "tasks", "task", "Tiles of operators; one runs on one core at a time"),
    "u64 start: planned cycle",
    "u64 cycles: planned",
    "u32 core: where it runs",
    "u32 first_read: in operands",
    "u32 reads: how many",
    "u32 first_write: in operands",
    "u32 writes: how many",
    "u32 scratch: the residency of its scratch bytes; NONE for none",
    "u32 first_step: in steps",
    "u32 steps: how many; 0 without a model",
    "u32 name: position in texts",
    _SPARE,
)
TRANSFERS = _layout(
    *(10, "transfers", "transfer", "DMA moves; several copies are a multicast"),
    "u64 start: planned cycle",
    "u64 cycles: planned",
    "u64 bytes: size",
    "u32 engine: that moves it",
    "u32 channel: of the engine, from 0",
    "u32 first_copy: in copies",
    "u32 copies: how many destinations",
    "u32 buffer: what it moves a part of",
    _SPARE,
)
COPIES = _layout(
    *(11, "copies", "copy", "Strided copies: nested loops over runs of contiguous bytes"),
    "u64 source: address of the first byte read in the source memory",
    "u64 destination: address of the first byte written in the destination memory",
    "u32 source_memory: where it comes from",
    "u32 destination_memory: where it goes to",
    "u32 run: contiguous bytes of each run",
    "u32 first_loop: in loops, the outermost",
    "u32 loops: how many; 0 for one run",
    "u32 residency: the residency that it fills",
)
LOOPS = _layout(
    *(12, "loops", "loop", "Loops of copies, the outermost of each copy first"),
    "u64 source_stride: bytes from one turn to the next",
    "u64 destination_stride: bytes from one turn to the next",
    "u32 count: turns",
    _SPARE,
)
LISTS = _layout(
    *(13, "lists", "list", "Command lists: those of the cores, then those of the channels"),
    "u32 kind: LIST_CORE or LIST_CHANNEL",
    "u32 owner: the core, or the engine",
    "u32 channel: of the engine; 0 for a core",
    "u32 first_command: in commands",
    "u32 commands: how many",
    _SPARE,
)
COMMANDS = _layout(
    *(14, "commands", "command", "Commands, list by list"),
    "u32 operation: COMMAND_WAIT, COMMAND_SIGNAL, COMMAND_RUN or COMMAND_MOVE",
    "u32 argument: the event, the event, the task, or the transfer",
    "u32 count: of a wait; 0 otherwise",
)
PORTS = _layout(
    *(15, "ports", "port", "Inputs and outputs of the network, in the model's order"),
    "u64 address: of the first byte in its memory",
    "u64 bytes: size",
    "u32 memory: a DRAM",
    "u32 direction: PORT_INPUT or PORT_OUTPUT",
    "u32 type: of its elements, TYPE_...",
    "u32 rank: axes of the model's tensor",
    "u32 shape: position of the model's lengths in words",
    "u32 strides: position of the bytes between neighbours of each of the model's axes in words",
    "u32 tensor: in tensors",
    "u32 name: position in texts",
)
SEGMENTS = _layout(
    *(16, "segments", "segment", "Constants: what to write into the memories before the start"),
    "u64 address: of the first byte in its memory",
    "u64 bytes: size",
    "u64 image: position of the first byte in the image",
    "u32 memory: where it lies",
    "u32 name: position in texts",
)
VALUES = _layout(
    *(17, "values", "value", "Tensors of the network that steps compute with"),
    "u32 type: of its elements, TYPE_...",
    "u32 rank: axes, in the model's order",
    "u32 shape: position of its lengths in words",
    "u32 name: position in texts",
)
SCALES = _layout(
    *(18, "scales", "scale", "Quantisations: real = scale * (integer - zero point)"),
    "u32 type: of the integers, TYPE_...",
    "i32 axis: along which scales differ; -1 for one scale",
    "u32 count: of scales",
    "u32 scales: position in words, bits of float32",
    "u32 zeros: of zero points, 1 or count",
    "u32 zero_points: position in words",
)
PIECES = _layout(
    *(19, "pieces", "piece", "Boxes of values as they lie in a memory"),
    "u64 offset: of the first byte in the memory, or in the workspace",
    "u32 memory: where it lies; NONE for the workspace",
    "u32 residency: the residency; NONE in the workspace",
    "u32 box: position of first element and elements of each axis (model's order) in words",
    "u32 strides: position of the bytes between neighbours of each of the model's axes in words",
)
VIEWS = _layout(
    *(20, "views", "view", "Boxes that a step reads or writes, and the pieces that hold them"),
    "u64 slot: where in the workspace the box may lie packed; unused if direct",
    "u64 offset: of the box's first byte, if it lies in one piece",
    "u64 bytes: size, packed",
    "u32 value: in values; NONE for partial sums",
    "u32 type: of its elements, TYPE_...",
    "u32 rank: axes, in the model's order",
    "u32 box: position of first element and elements of each axis in words",
    "u32 first_piece: in pieces",
    "u32 pieces: how many; what several hold is the same",
    "u32 direct: 1 if one piece holds it packed and no other operand shares its bytes",
    _SPARE,
)
STEPS = _layout(
    *(21, "steps", "step", "Operators of a task, in order; the last one gives what it writes"),
    "u32 kind: OPERATOR_...",
    "u32 output: in views",
    "u32 inputs: how many",
    "u32 first_input: position in words of one view for each input, -1 for none",
    "u32 first_attribute: in attributes",
    "u32 attributes: how many",
    "u32 quantised: 1 for an operator on integers that stand for reals, 2 for a QLinear one",
    "u32 scales: position in words of one scale for each input and the output's, -1 for none",
    "u32 limits: LIMIT_LOW and LIMIT_HIGH of real results, before they are rounded",
    "i32 low: bits of float32",
    "i32 high: bits of float32",
    "u32 part: PART_WHOLE, PART_PARTIAL or PART_LAST of the reduction",
    "u32 part_start: first element of the part",
    "u32 part_end: behind its last element",
    "u32 previous: view of the sums of the parts before; NONE for the first part",
    _SPARE,
)
ATTRIBUTES = _layout(
    *(22, "attributes", "attribute", "Attributes of steps, normalised: no defaults to know"),
    "u32 name: ATTRIBUTE_...",
    "u32 type: VALUE_INTEGER, _REAL, _TEXT, _INTEGERS or _REALS",
    "u32 count: of words; 1 for a text",
    "u32 first: position in words; in texts for a text",
)

PLAN_LAYOUTS = (
    *(SUMMARY, MEMORIES, CORES, ENGINES, TENSORS, BUFFERS, RESIDENCIES, OPERANDS, TASKS),
    *(TRANSFERS, COPIES, LOOPS, LISTS, COMMANDS),
)
"""Tables that need no model."""

NETWORK_LAYOUTS = (PORTS, SEGMENTS, VALUES, SCALES, PIECES, VIEWS, STEPS, ATTRIBUTES)
"""Tables that are empty without a model."""

LAYOUTS = (*PLAN_LAYOUTS, *NETWORK_LAYOUTS)

WORDS_CODE, TEXTS_CODE, IMAGE_CODE = 101, 102, 103
"""Numbers of the pools in the binary format."""
