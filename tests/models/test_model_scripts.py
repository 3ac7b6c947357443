"""The scripts that make the models."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

MODELS = Path(__file__).parents[2] / "models"


@pytest.mark.parametrize(
    "scripts",
    [["make_mlperf_tiny", "make_float16"], ["make_recurrent"]],
    ids=lambda scripts: scripts[0],
)
def test_running_a_script_again_gives_the_same_bytes(scripts: list[str], tmp_path: Path) -> None:
    for script in scripts:
        subprocess.run([sys.executable, MODELS / f"{script}.py", tmp_path], check=True)
    made = sorted(tmp_path.glob("*.onnx"))

    assert made
    for path in made:
        assert path.read_bytes() == (MODELS / path.name).read_bytes(), path.name
