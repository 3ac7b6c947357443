"""What cannot be is said by name, with its exit code, before anything is read or written."""

from dataclasses import replace
from pathlib import Path

import pytest

from checker.worked_example import PLAN, PROBLEM
from runs.small import write_files
from spmilp.plan.file import plan_bytes
from spmilp.problem.file import write_problem
from tests.acceptance.doors import MODELS, Run

MODEL = MODELS / "ds_cnn_int8.onnx"
COMPARE, EXPORT = ("compare", "example.json", "-o", "out"), ("export", "plan/plan.json")
PACK, SWEEP = ("pack", "absent.csv"), ("sweep", "chain.onnx")
PAIR = (*SWEEP, "-m", "pair.yaml")

CASES = [
    ((*COMPARE, "--solvers", "list,nothing"), 2, "nothing"),
    ((*COMPARE, "--solvers", "list,list"), 2, "different names"),
    ((*COMPARE, "--solvers", ","), 2, "different names"),
    ((*COMPARE, "--machine", "mesh4x4"), 2, "carries its machine"),
    ((*COMPARE, "example.json"), 2, "'example'"),
    ((*EXPORT, "--format", "elf"), 2, "--format elf: there are c, player, c-code, "),
    ((*EXPORT, "--format", ","), 2, "--format: there are c, "),
    ((*EXPORT, "--format", "c"), 2, "c needs the model: add --model"),
    ((*EXPORT, "--prefix", "1x"), 2, "--prefix '1x': expected a letter"),
    ((*EXPORT, "--model", MODEL, "-f", "c"), 3, "is not the model of this problem"),
    (PACK, 2, "--capacity BYTES, or --minimise"),
    ((*PACK, "--pool", "a=1K", "-c", "1K"), 2, "says capacity and reserve itself"),
    ((*PACK, "--capacity", "0"), 2, "--capacity"),
    ((*PACK, "--capacity", "-1"), 2, "--capacity"),
    ((*PACK, "--capacity", "1kB"), 2, "may count by 1000 or by 1024"),
    ((*PACK, "--capacity", "lots"), 2, "'lots'"),
    ((*PACK, "--minimise", "--time-limit", "soon"), 2, "'soon'"),
    ((*PACK, "--minimise", "--node-limit", "0"), 2, "--node-limit"),
    *(
        ((*PACK, "-c", "64", "--reserve", given), 2, f"--reserve {given}: ")
        for given in ("16", "16-8", "8-8", "a-b", "0-")
    ),
    (("solve", MODEL, "--workers", "0"), 2, "--workers"),
    (("solve", MODEL, "--dim", "batch"), 2, "--dim batch: expected NAME=SIZE"),
    (("solve", MODEL, "--input", "x"), 2, "--input x: expected NAME=VALUE"),
    ((*SWEEP, "--spm", "lots"), 2, "spm=lots: 'lots' is no size in bytes"),
    ((*SWEEP, "--set", "topology"), 2, "expected FIELD=VALUES"),
    ((*SWEEP, "--set", "a=1", "--set", "a=2"), 2, "--set a is given twice"),
    ((*PAIR, "--set", "drams.x=1"), 2, "no such field; did you mean"),
    ((*SWEEP, "--solver", "nobody"), 2, "nobody: no solver of this name"),
    ((*SWEEP, "-m", "nowhere"), 3, "machine 'nowhere': no preset of this name"),
    (("sweep", "absent.onnx"), 3, "no model file absent.onnx"),
    (("sweep", "problem.json"), 2, "problem.json is a problem, which carries its machine"),
    ((*SWEEP, "--target", "speed=3"), 2, "target speed=3: there are makespan"),
    ((*SWEEP, "--target", "makespan=3"), 2, "give one field a range"),
    ((*SWEEP, "--scheduler", "tcp://x:1", "--jobs", "2"), 2, "leave jobs out"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), CASES, ids=range(len(CASES)))
def test_what_is_wrong_is_named_and_nothing_is_done(
    run: Run, tmp_path: Path, arguments: tuple[object, ...], code: int, said: str
) -> None:
    write_files(tmp_path)
    write_problem(PROBLEM, tmp_path / "example.json")
    write_problem(PROBLEM, tmp_path / "plan/problem.json")
    plan = plan_bytes(replace(PLAN, problem_sha256=""), PROBLEM)
    (tmp_path / "plan/plan.json").write_bytes(plan)

    ended = run(*arguments)

    assert (ended.code, ended.out) == (code, "")
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert "absent.csv" not in ended.err
    assert "Traceback" not in ended.err
    assert not list(tmp_path.glob("out/**/*.*"))
    assert not (tmp_path / "plan/export").exists()


HEAD = '<ir_version: 8, opset_import: ["": 17]>'
ANY = "any (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }"
DET = "det (float[4, 4] x) => (float y) { y = Det(x) }"


def model(folder: Path, text: str) -> Path:
    import onnx
    from onnx.parser import parse_model

    onnx.save(parse_model(f"{HEAD} {text}"), folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize(
    ("text", "options", "says"),
    [
        (ANY, ("--dim", "N=99999999999999999999"), "dimension N is 99999999999999999999, expected"),
        (ANY, ("--dim", f"N={2**48}"), "tensor x has 4503599627370496 B, expected at most"),
        (DET, (), "(Det)"),
    ],
)
def test_a_model_that_cannot_be_mapped_has_one_message(
    text: str, options: tuple[str, ...], says: str, run: Run, tmp_path: Path
) -> None:
    ended = run("solve", model(tmp_path, text), *options, "-o", "out")
    assert (ended.code, ended.out) == (3, "")
    assert says in ended.err
    assert "Traceback" not in ended.err
    assert not (tmp_path / "out").exists()


def test_json_gives_the_error_as_an_object_that_lists_the_nodes(run: Run, tmp_path: Path) -> None:
    ended = run("solve", model(tmp_path, DET), "--json")
    assert (ended.code, ended.json["status"], ended.json["exit_code"]) == (3, "error", 3)
    (node,) = ended.json["error"]["nodes"]
    assert node["operator"] == "Det"
