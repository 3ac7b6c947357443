"""What a user can rely on, told at the front doors alone.

Nothing here imports a part of the package: ``import spmilp``, the command line, files and exported
C are all that these tests know, so that they hold whatever the inside becomes.
"""
