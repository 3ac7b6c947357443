"""The benchmark: suites of problems, solvers side by side, tables.

    suite, read                 suites, and their YAML format
    make, kinds                 the problem of a row, and its statistics
    generated, generated_parts  large problems from a seed
    run, child, worker          each run in a process of its own
    records                     measurements, line by line
    tables, summary, sections   frames and files of a folder; figures of solvers; text
    against                     one folder compared with another
    peers                       inputs of other tools
Suites are YAML files in ``suites/``.
"""
