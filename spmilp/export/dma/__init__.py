"""DMA descriptors: a table for any controller, and chains for named controllers.

    files   the files of the export
    chains  copies as chains of descriptors, and the tables in which controllers take them

Every other module is the encoding of one controller: ``aie_bd``, ``axi_dma_sg``, ``edma_tcd``,
``epiphany`` and ``mchan``.
"""
