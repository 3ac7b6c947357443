"""Problems from and to the plain formats of neighbouring fields: job shops, lists of lifetimes.

job_shop   flexible job shops in their usual text format
lifetimes  offset allocation: lifetimes and sizes
"""
