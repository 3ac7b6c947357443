"""Why a plan is slow, or why there is none, and what helps.

    explain     the front door: a result, a problem or a model in, text and data out; and what a
                little more of what binds a plan saves
    slow        all analyses of a plan, and the same in words
    chain       a plan as activities (tasks and transfers), what each waited for, the critical
                chain, and what binds each cycle of it
    usage       phases, idle cores, live bytes of memories, DRAM traffic beyond the compulsory
    infeasible  what of a problem cannot be on its machine, proven without solving
    remedies    changes that make it fit, each tried by solving
    groups      a model before anything is solved: operators, groups, tiles, roofline
    text        what ``explain`` answers: lines of 80 columns, and data
Everything refers to objects by index; whoever shows it looks up the names.
"""
