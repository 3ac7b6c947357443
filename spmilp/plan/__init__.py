"""Plans: placements, residencies and transfers that answer a problem.

    plan                      the plan as all other packages see it
    measures                  its quantities, and the DRAM traffic that no plan can avoid
    file                      ``plan.json``, alone and with its ``problem.json``;
                              ``plan.schema.json`` is its JSON Schema
    memory                    addresses of slices, and bytes that are occupied over time
    states                    what an inference of a stream leaves for the next one, and where
    unrolled                  inferences of a stream as one plan: what it means that it is valid
    running                   the same in instances of tensors, with what the application does
    latencies                 of several networks each one's, against its deadline
    frames                    a plan as pandas frames, with names, uses of cores and memories
Times are in cycles, sizes in bytes; all intervals are half-open.
"""
