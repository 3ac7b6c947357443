"""Machines: memories, cores, links and DMA engines, and the routes between memories.

    machine                   the hardware as all else sees it, and a machine in JSON
    description               the YAML format
    read, expand, topology    from a file to a machine
    changed                   sources of numbers; other numbers, for what-if questions
    routes, paths             routes, engines and staging paths
    link_use                  what transfers can use of links
    controllers               copies that a DMA controller can express
Presets are YAML files in ``presets/``; ``machine.schema.json`` is the JSON Schema of such files.
"""
