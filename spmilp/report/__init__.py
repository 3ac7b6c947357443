"""Figures of plans and models, for people.

``summary``, ``answer_table``
    The figures of a plan as plain data; the same as rows, text and HTML.
``inspection``
    A model before anything is solved: operators, groups, tiles, roofline.
``memory_map``, ``timeline``
    Drawings: residencies by time and address; cores and DMA channels over time.
``figures``, ``palette``
    Common parts of drawings, and colours.
"""
