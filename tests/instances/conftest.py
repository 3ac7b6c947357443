"""The scripts in ``instances/`` import each other as neighbours, as they do when they are run."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "instances"))
