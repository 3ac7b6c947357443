"""Why there is no plan, or why it is slow, and what helps.

    explain   the front door: a result, a problem or a model in, text and data out
    cause     what keeps every plan away, as data
    misfit    what of a problem cannot be on its machine, proven without solving
    shortages what a search for tiles, or the list scheduler, has found no room for
    remedies  changes of the machine that make it fit, each tried by solving
    pinned    pins that keep every plan away, and which of them to leave out
    smaller_tiles  groups cut into smaller tiles until a plan is found
    what_if   what a little more of what binds a plan saves, solved again
    alike     parts of a machine that are changed together
    words     why it does not fit, as text and data
Why a plan is slow is found by :mod:`spmilp.analysis` and said by :mod:`spmilp.report.slowness`.
"""
