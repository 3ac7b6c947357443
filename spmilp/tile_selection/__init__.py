"""Tile sizes: what is considered, what it is expected to cost, and a search that evaluates plans.

    choose           choose_tiles: what time allows, from a plan in the first seconds on
    first_choice     a choice for all groups jointly, by the estimate
    coarse           a choice by what tasks read: for quickest plans, and until all tasks fit
    refine           the search: its neighbourhoods, and the tilings that were tried
    evaluation       the list scheduler's plans evaluate the problems, justified where that pays
    smaug            the largest tiles that fit, as SMAUG chooses them
    given_tiles      tilings that people have pinned, or that an earlier problem had

    group_model      what a group's tiles read, hold and cost; tilings cut until they fit
    candidates       tilings of one group that are worth considering, and where their tiles run
    estimate         cycles of a group
    operand_traffic  bytes that memories take in of one operand
    pieces           how many pieces of operands tasks read, and the bytes that they need with these
    residence        tensors expected to stay in scratchpads
    fused            bands of operators, for results that do not

    tiled_problem    the result: a problem with the schedule that its tiles were evaluated by
    settings         options, and numbers that stand for judgement
The estimate is for choosing among tilings; no bound and no plan rests on it.
"""
