"""DMA descriptors: a chain that any controller can be fed from, and chains of named controllers."""
