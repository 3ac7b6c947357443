"""Silence for libraries that log what the front end reports itself."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

NOISY = ("onnx_ir", "onnxscript")


@contextmanager
def quiet_libraries() -> Iterator[None]:
    """Hold back what the ONNX libraries log, and NumPy's warnings while constants are folded."""
    loggers = [logging.getLogger(name) for name in NOISY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
