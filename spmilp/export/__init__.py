"""Exports of a plan for other programs (``docs/exports.md`` describes every file).

formats                     the formats by name; an export as users ask for it
subject, names, errors      a plan with its problem, origin and network; names as safe text
actions, places             what runs: copies and calls of kernels, and where their bytes lie
packed, bits                as a string of bits; fields, prefix codes and templates of bits
straight                    as a function in C99 for each core and channel
sources                     templates filled in; the program that runs either
codes                       numbers that stand for names in C, and limits of its kernels
c, templates                sources in C99: those of all plans, by who needs them; those with marks
tables, perfetto            CSV: command lists, descriptors, addresses; a timeline
npe                         transfers as a workload of tt-npe
"""
