"""Why a plan is slow, or why there is none, and what helps.

    explain     the front door: a result, a problem or a model in, text and data out
    slow        why a plan takes its cycles, in words
    chain       a plan as activities (tasks and transfers), what each waited for, the critical
                chain, what binds each cycle of it, and idle cores
    usage       DRAM traffic of each tensor, and what is beyond the compulsory
    infeasible  what of a problem cannot be on its machine, proven without solving
    remedies    changes that make it fit, each tried by solving
    groups      a model before anything is solved: operators, groups, tiles, roofline
    text        what ``explain`` answers: lines of 80 columns, and data
Everything refers to objects by index; whoever shows it looks up the names.
"""
