"""Plans: placements, residencies and transfers that answer a problem.

plan                            the plan as all else sees it
measures                        its quantities, and the DRAM traffic that none can avoid
read, write, model, rows, pair  ``plan.json``, alone and with its ``problem.json``
derived                         names, addresses and uses that the file repeats for readers
addresses, ends                 where slices lie; where transfers read and write
live_bytes                      bytes that are occupied over time
frames                          a plan as pandas frames
schema                          the published JSON Schema
"""
