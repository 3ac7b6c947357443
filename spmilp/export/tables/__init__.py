"""A plan as tables of integers of fixed width, which the C and the binary export both write.

``docs/exports.md`` describes every table; :func:`~spmilp.export.tables.all_tables.all_tables` makes
them.
"""
