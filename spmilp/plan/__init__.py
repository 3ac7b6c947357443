"""Plans: placements, residencies and transfers that answer a problem.

    plan                      the plan as all other packages see it
    measures                  its quantities, and the DRAM traffic that no plan can avoid
    read, write, model, rows  ``plan.json``, alone and with its ``problem.json``
    derived                   names, addresses and uses that the file repeats for readers
    addresses, ends           addresses of slices; addresses that transfers read and write
    live_bytes                bytes that are occupied over time
    frames                    a plan as pandas frames
    schema                    the published JSON Schema
Times are in cycles, sizes in bytes; all intervals are half-open.
"""
