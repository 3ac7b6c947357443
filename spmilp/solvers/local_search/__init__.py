"""Local search over orders, cores, bytes set aside and weights, with the list scheduler as judge.

What is searched is not a plan but what the list scheduler makes one from (a ``Candidate``), so that
every step is a complete valid schedule. Large problems allow few steps; so most of them change what
the incumbent's critical chain touches.
"""
