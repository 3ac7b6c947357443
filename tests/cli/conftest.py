"""Running the command as a user does, inside the test's process."""

from pathlib import Path
from time import perf_counter

import pytest

from cli.running import Ended, Run
from spmilp.cli.main import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run ``spmilp`` with arguments in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPMILP_DEBUG", raising=False)

    def run_with(*arguments: object) -> Ended:
        monkeypatch.setattr("sys.argv", ["spmilp", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(perf_counter())
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return run_with
