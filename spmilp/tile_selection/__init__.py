"""Tile sizes: what is considered, what it is expected to cost, and a search that evaluates plans.

    first_choice        a choice for all groups jointly, by the estimate
    search              a plan in the first seconds, and a search from there on
    evaluation          the list scheduler's plans evaluate the problems, justified where that pays
    helpers             processes that evaluate tilings beside the search
    refine, trials      its neighbourhoods, and the tilings that were tried
    coarse              tilings of which a plan is made soonest
    piece_counts        how many pieces of operands tasks read: what a plan will take
    waves               a batch part by part
    pinned_tiles        tilings that people have pinned

    candidate_space     the candidates of all groups
    candidates          those of one group: cut along few axes until they fit
    shrinker            a tiling cut further and further, until a tile fits
    fitting             tilings cut anew where tasks do not fit, with those of what they read
    working_sets        what tasks need at one time, every piece of an operand padded
    group_model, reads  what a group's tiles read, hold and cost under a tiling
    profile             a candidate with the places where its tiles run

    estimate            cycles of a group, and of all groups one after another
    operand_traffic     bytes that memories take in of one operand
    overlaps            elements that boxes and tiles share
    residence           tensors expected to stay in scratchpads; bands of operators for the others
    chains              groups whose results are added up block by block by the last of them
    fused_reductions    such chains cut alike where their results do not fit
    cost_parameters     guesses of the estimate, and alternatives to them

    smaug               the largest tiles of a convolution that fit, as SMAUG chooses them
    smaug_problem       a network in such tiles

    tiled_problem       the result: a problem with the schedule that its tiles were evaluated by
    mode                how tiles are chosen
The estimate is for choosing among tilings; no bound and no plan rests on it.
"""
