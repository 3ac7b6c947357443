"""Cost models learned from measurements: ``spmilp calibrate``.

    measurements    measured tiles, their CSV file; the tiles of a network worth measuring
    fit             a model for each family of tiles, cross-validated
    coverage        tasks whose cycles no measurement covers
    boosting        regression trees, for a small error or for the right order (scikit-learn)
The model and its file are in :mod:`spmilp.lowering`, which needs no scikit-learn.
"""
