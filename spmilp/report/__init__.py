"""Figures of plans and models, for people.

    summary, answer_table  the figures of a plan as plain data; the same as rows, text and HTML
    inspection             a model before anything is solved: operators, groups, tiles, roofline
    memory_map, timeline   residencies by time and address; cores and DMA channels over time
    page                   one page for a browser that shows a plan and why
    words, palette         what an analysis finds, in words; colours of figures and of the page
    figures                common parts of drawings, and colours
Figures need matplotlib.
"""
