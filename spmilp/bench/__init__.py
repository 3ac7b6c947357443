"""The benchmark: suites of problems, solvers side by side, tables.

    suite, read                 suites, and their YAML format
    make, kinds                 the problem of a row, and its statistics
    generated, generated_parts  large problems from a seed
    run, child, worker          each run in a process of its own
    records                     measurements, line by line
    tables, summary, sections   frames of runs; figures of solvers; text
    folder                      the files of a benchmark, and its summary
    attribution                 where gaps and DRAM bytes beyond the compulsory lie
    best_known                  the best makespans that are known, and gaps split by them
    against                     one folder compared with another
    peers                       inputs of other tools
Suites are YAML files in ``suites/``.
"""
