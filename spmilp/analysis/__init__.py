"""Why a plan takes the time, the room and the traffic that it takes, as data.

    analyse    all of what follows, of one plan
    subject    a plan as activities (tasks and transfers) with their times
    causes     for each activity, what it had to wait for
    resources  when engines had no channel left and links no rate
    chain      the critical chain: back from the last end through what each start waited for
    binding    what each cycle of the chain is spent on: core, channel, link, room
    phases     stretches of the makespan, and what bounds each
    idle       the idle cycles of each core, attributed to what it waited for
    space      each on-chip memory over time: live bytes, peak, fragmentation, double buffers
    traffic    DRAM traffic by tensor, and what of it is beyond the compulsory, by kind and operator
Everything refers to objects by index; whoever shows it looks up the names.
"""
