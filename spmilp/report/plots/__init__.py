"""Static figures for papers, drawn by matplotlib.

timeline    cores and DMA channels over time, of one plan or of several on one axis
memory_map  residencies by time and address
traffic     DRAM traffic by tensor, beside what is compulsory
gap         incumbent and bound over the time of a search
files       figures as PDF, PNG or SVG, the same bytes for the same figure
figures     common parts: axes, legends, titles
"""
