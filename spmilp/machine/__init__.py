"""Machines: memories, cores, links and DMA engines, and the routes between memories.

    machine                             the hardware as all else sees it
    description, fields, parse          the YAML format and its error messages
    read, expand, templates, topology   from a file to a machine
    provenance                          sources of the numbers
    scaled, changed                     a machine with other numbers, for what-if questions
    routes, paths, xy                   routes, engines and staging paths
    controllers                         copies that a DMA controller can express
    convert                             a machine in JSON
    schema                              the published JSON Schema of machine files
Presets are YAML files in ``presets/``.
"""
