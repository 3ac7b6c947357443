"""Tile sizes: what is considered, what it is expected to cost, and a search that evaluates plans.

    first_choice     a choice for all groups jointly, by the estimate
    choose           choose_tiles: what time allows, from a plan in the first seconds on
    evaluation       the list scheduler's plans evaluate the problems, justified where that pays
    refine           the search: its neighbourhoods, and the tilings that were tried
    coarse           tilings without an estimate: those of quickest plans, and until all tasks fit
    smaug            the largest tiles that fit, as SMAUG chooses them
    given_tiles      tilings that people have pinned, or that an earlier problem had

    group_model      what a group's tiles read, hold and cost; tilings cut until they fit
    candidates       tilings of one group that are worth considering, and where their tiles run
    estimate         cycles of a group, and of all groups one after another
    operand_traffic  bytes that memories take in of one operand
    pieces           how many pieces of operands tasks read, and the bytes that they need with these
    waves            a batch part by part
    residence        tensors expected to stay in scratchpads; bands of operators for the others
    fused            groups whose results are added up block by block by the last of them

    tiled_problem    the result: a problem with the schedule that its tiles were evaluated by
    settings         options, and numbers that stand for judgement
The estimate is for choosing among tilings; no bound and no plan rests on it.
"""
