"""A bound from the stages that a network must pass one after another, each with its own work,
traffic and bytes: what a stage loads ahead for later ones has to lie somewhere until then.

    milestones  ──▶ windows   the stages in which each task can run
        demands               work, loads, stores and live bytes by window
        program  ──▶ dual     a linear program, and a bound that its solution proves
"""
