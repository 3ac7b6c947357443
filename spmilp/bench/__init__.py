"""The benchmark: suites of problems, solvers side by side, tables.

suite, format, read           suites, their YAML format, and how they are read
make, builders, kinds         from a row to its problem, and its statistics
generated, generated_mesh, generated_parts  large problems from a seed
run, child, worker, requests  each run in a process of its own
memory                        its peak
records, output               measurements, line by line, and the files of a folder
tables, summary, sections     what they say: frames, summaries, tables of text
against                       one folder compared with another
peers                         inputs of other tools; suites are YAML files in ``suites/``
"""
