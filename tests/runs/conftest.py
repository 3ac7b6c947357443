"""One sweep, solved one row after another: what all other ways of solving it must give."""

from pathlib import Path

import pandas as pd
import pytest

import spmilp
from runs.small import OPTIONS, write_files

SPM = "3k,4k"
CHANNELS = (1, 2)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_files(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def serial(files: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("serial")
    return spmilp.sweep(*files, spm=SPM, dma_channels=CHANNELS, folder=folder, jobs=1, **OPTIONS)
