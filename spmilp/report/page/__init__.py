"""The report: one page that shows a plan, by itself and without a network.

page       the page: markup, style, scripts and the plan in one text
contents   what the scripts are given, as columns of numbers and names
assets     markup, style and scripts; they draw on canvas
"""
