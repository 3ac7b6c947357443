"""Machines: memories, cores, links and DMA engines, and the routes between memories.

    machine                   the hardware as all else sees it
    description, fields       the YAML format and its error messages
    read, expand, topology    from a file to a machine
    provenance                sources of the numbers
    changed                   a machine with other numbers, for what-if questions
    routes, paths             routes, engines and staging paths
    controllers               copies that a DMA controller can express
    convert                   a machine in JSON
Presets are YAML files in ``presets/``; ``machine.schema.json`` is the JSON Schema of such files.
"""
