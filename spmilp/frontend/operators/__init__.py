"""One family per kind of operator, listed in ``registry``; ``family`` is their protocol."""
