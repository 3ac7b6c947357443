"""A mesh of any number of cores, for problems that are generated."""

from math import isqrt

from spmilp.machine.description import MachineDescription
from spmilp.machine.expand import expand
from spmilp.machine.machine import Machine
from spmilp.units import Bytes

MACS_PER_CYCLE = 256
LANES = 64
LAUNCH_CYCLES = 50


def generated_mesh(cores: int, scratchpad: Bytes) -> Machine:
    """Return a mesh, as square as its number of cores allows, whose west edge is DRAM ports.

    So the bandwidth of DRAM grows with the edge and computing with the area, as on a chip: four
    cores have 16 B/cycle each, a thousand have 1 B/cycle. Each scratchpad has a DMA engine of four
    channels that loads from DRAM and from any other scratchpad.

    Parameters
    ----------
    scratchpad
        Bytes of each core's memory.

    Raises
    ------
    ValueError
        If there is no core.
    """
    if cores < 1:
        raise ValueError(f"a mesh of {cores} cores, expected 1 or more")
    rows = next(rows for rows in range(isqrt(cores), 0, -1) if cores % rows == 0)
    content = {
        "name": f"generated{cores // rows}x{rows}",
        "description": "A mesh of a generated problem; no real chip.",
        "topology": {
            "type": "mesh",
            "columns": cores // rows,
            "rows": rows,
            "rate_bytes_per_cycle": 32,
            "latency_cycles": 1,
        },
        "core_kinds": {
            "core": {
                "arrays": [{"dtype": "int8", "K": 16, "C": MACS_PER_CYCLE // 16}],
                "lanes": {"int8": LANES},
                "launch_cycles": LAUNCH_CYCLES,
            }
        },
        "scratchpads": [
            {
                "cores": {"core": 1},
                "size_bytes": scratchpad,
                "alignment_bytes": 64,
                "dma": [
                    {
                        "channels": 4,
                        "setup_cycles": 20,
                        "rate_bytes_per_cycle": 16,
                        "dimensions": 4,
                    }
                ],
            }
        ],
        "dram": [
            {
                "sites": ["r_0_*"],
                "rate_bytes_per_cycle": 32,
                "latency_cycles": 50,
                "alignment_bytes": 64,
            }
        ],
    }
    return expand(MachineDescription.model_validate(content))
