"""What the tests at the front doors share."""

from pathlib import Path

import pytest

from tests.acceptance.doors import Ended, Run, run_main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Run ``spmilp`` with arguments in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPMILP_DEBUG", raising=False)
    monkeypatch.setenv("COLUMNS", "100")

    def run_with(*arguments: object) -> Ended:
        capsys.readouterr()
        code = run_main(arguments, monkeypatch)
        captured = capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    return run_with


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a problem of four tasks by hand, and a plan of it."""
    import spmilp

    folder = tmp_path_factory.mktemp("tiny")
    builder = spmilp.ProblemBuilder(spmilp.load_machine("mesh4x4").replace(spm="64KiB"))
    x = builder.input("x", (16, 64), "int8")
    w = builder.weight("w", (64, 64), "int8")
    for part in range(4):
        rows = x[4 * part : 4 * part + 4]
        made = (f"y{part}", (4, 64), "int8")
        builder.output(builder.task(f"mm{part}", reads=[rows, w], writes=made, cycles=400 + part))
    spmilp.solve(builder.build(), solver="list").save(folder)
    return folder
