"""Instructions of the player itself for each command, on a Cortex-M3 in QEMU.

Usage: python -m benchmarks.player.instructions [--machines A,B] [--models A,B]

Kernels are empty functions here, so what is counted is reading commands, transfers, packing
operands and everything else around the kernels. QEMU runs one instruction in each nanosecond of
its clock (-icount shift=0), and the board's timer counts 25 MHz of it.
"""

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.player import programs
from benchmarks.player.plans import arguments_of, print_rows
from spmilp.checker.values.inputs import random_inputs
from spmilp.export.subject import Subject

HEAD = "| network | machine | commands | player | straight code |\n|---|---|--:|--:|--:|"

INSTRUCTIONS_PER_TICK = 40

EMPTY_KERNEL = """
void nothing(const struct spmilp_call *call);
void nothing(const struct spmilp_call *call) { (void)call; }
"""

EMPTY_KERNELS = """
#include "spmilp_kernels.h"

static void nothing(const struct spmilp_call *call) { (void)call; }

spmilp_kernel *spmilp_kernel_of(uint32_t kind)
{
    (void)kind;
    return nothing;
}
"""

PLAY = "wrong = spmilp_play_loop(player);"
TIMED = """
    volatile uint32_t *const timer = (volatile uint32_t *)0x40000000U; /* CMSDK: control, value */
    timer[2] = timer[1] = 0xFFFFFFFFU;
    timer[0] = 1U;
    wrong = spmilp_play_loop(player);
    const uint32_t ticks = 0xFFFFFFFFU - timer[1];
    packed[0] = ticks;
    char ticks_name[] = "ticks#.bin";
    transfer(SYS_WRITE, open_file(ticks_name, 0U, WRITE_BINARY), sizeof ticks);
"""


def main() -> int:
    """Print a row for each plan."""
    parser = arguments_of(__doc__, ("ds_cnn_int8", "resnet8_int8"), ("gap8",))
    return print_rows(HEAD, parser.parse_args(), cells)


def cells(subject: Subject, _: str) -> Iterator[str]:
    """Yield what the table says of one plan."""
    commands = sum(len(each.commands) for each in subject.lists.lists)
    yield f"{commands:,}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs.write_player(subject, folder)
        (folder / "spmilp_kernels.c").write_text(EMPTY_KERNELS)
        yield f"{instructions(subject, folder, 'spmilp_mps2') / commands:,.0f}"
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        programs.write_code(subject, folder)
        named = folder / "spmilp_code_kernels.h"
        named.write_text(
            re.sub(r"(#define SPMILP_KERNEL_\w+) .*", r"\1 nothing", named.read_text())
        )
        with (folder / "spmilp_straight.c").open("a") as file:
            file.write(EMPTY_KERNEL)
        yield f"{instructions(subject, folder, 'spmilp_code_mps2') / commands:,.0f}"


def instructions(subject: Subject, folder: Path, board: str) -> int:
    """Return how many instructions a program takes, whose kernels are empty."""
    source = folder / f"{board}.c"
    source.write_text(source.read_text().replace(PLAY, TIMED))
    program = programs.build(folder, "mps2", program=f"{board}.elf")
    if subject.network is None:
        raise ValueError("a player needs the model")
    for number, values in enumerate(random_inputs(subject.network, seed=0).values()):
        (folder / f"input{number}.bin").write_bytes(values.tobytes())
    command = [*programs.QEMU[:-1], "-icount", "shift=0", "-kernel", program]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    ticks = int.from_bytes((folder / "ticks0.bin").read_bytes(), "little")
    return ticks * INSTRUCTIONS_PER_TICK


if __name__ == "__main__":
    sys.exit(main())
