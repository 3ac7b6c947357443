"""Figures of plans and models, for people.

    summary, answer_table  the figures of a plan as plain data; the same as rows, text and HTML
    inspection             a model before anything is solved: operators, groups, tiles, roofline
    search_log             each better incumbent and bound of a search, as text and JSON lines
    plots                  static figures: timelines, memory maps, traffic, convergence
    page                   one page for a browser that shows a plan and why
    explanation, slowness  what ``explain`` answers, as text and data; why a plan is slow
    words, palette         what an analysis finds, in words; colours of figures and of the page
Figures need matplotlib.
"""
