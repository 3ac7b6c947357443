"""Machines: memories, cores, links and DMA engines, and the routes between memories.

    machine                   the hardware as all else sees it, and a machine in JSON
    description               the YAML format, and its networks of routers
    read, expand              from a file to a machine; sources of numbers; other numbers
    tenstorrent, zigzag       SoC descriptors and hardware of Stream, as fields of such a file
    routes                    routes, engines, staging paths; what transfers can use of links
    controllers               copies that a DMA controller can express
Presets are YAML files in ``presets/``; ``machine.schema.json`` is the JSON Schema of such files.
"""
