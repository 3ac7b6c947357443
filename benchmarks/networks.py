"""Solve every network on the generic mesh and the edge machine; write docs/networks.md.

Usage: python benchmarks/networks.py [--only TEXT] [--output FILE]

One process at a time, one worker, the command line's own defaults: what a user gets. Networks that
fit a microcontroller also run on Epiphany III. The figures depend on the clock where the time limit
cuts a search short; everything else repeats.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TINY = ("resnet8", "ds_cnn", "mobilenetv1_025", "autoencoder")
LIGHT = (
    *("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet"),
    *("squeezenet", "vgg19", "zfnet512"),
)
OTHERS = ("resnet18", "mobilenetv2", "bert_tiny", "gpt2_block", "llama_block", "vit_tiny")
RECURRENT = ("tiny_lstm", "tiny_gru")
DIMENSIONS = {"models/bert_tiny_f32.onnx": ("batch=1", "sequence=64")}
HEAD = (
    "| network | machine | makespan | bound | gap | bound by | roofline | DRAM bytes "
    "| ÷ compulsory | tasks | transfers | seconds | checked |\n"
    "|---|---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|---|"
)


def rows() -> Iterator[tuple[str, str]]:
    """Yield every network with each of its machines."""
    tiny = [f"models/{name}_{kind}.onnx" for name in TINY for kind in ("f32", "int8")]
    others = [f"models/{name}_f32.onnx" for name in (*OTHERS, *RECURRENT)]
    light = [f"onnx:light_{name}" for name in LIGHT]
    for model in (*tiny, "models/ds_cnn_f16.onnx", *others, *light):
        yield from ((model, machine) for machine in ("mesh4x4", "edge16"))
        if model in tiny:
            yield model, "epiphany3"


def solve(model: str, machine: str) -> dict[str, Any]:
    """Run ``spmilp solve --json`` and return what it prints."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "spmilp", "solve", model, "--machine", machine]
        command += ["--json", "-o", folder]
        for dimension in DIMENSIONS.get(model, ()):
            command += ["--dim", dimension]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except json.JSONDecodeError:
        found = {"status": "error", "message": done.stderr.strip()[-300:]}
    return found


def line(model: str, machine: str, found: dict[str, Any]) -> str:
    """Return a row of the table."""
    name = Path(model).stem if "/" in model else model
    if found.get("makespan") is None:
        said = f"{found.get('status')}: {found.get('message', '')}"
        return f"| {name} | {machine} | {said} |" + " |" * 10
    ratio = found["dram_traffic"] / max(1, found["compulsory_dram_traffic"])
    cells = (
        name,
        machine,
        f"{found['makespan']:,}",
        f"{found['bound']:,}",
        f"{found['gap']:.1%}",
        found["bound_source"],
        f"{found['roofline']:,}" if found.get("roofline") else "",
        f"{found['dram_traffic']:,}",
        f"{ratio:.2f}",
        f"{found['tasks']:,}",
        f"{found['transfers']:,}",
        f"{found['seconds']:.1f}",
        "yes" if found["checked"] else "NO",
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Write the table row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose network or machine contains this")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "networks.md")
    options = parser.parse_args()
    lines = []
    for model, machine in rows():
        if options.only in f"{model} {machine}":
            lines.append(line(model, machine, solve(model, machine)))
            print(lines[-1], flush=True)
    text = f"""# Every network on two machines

Made by `python benchmarks/networks.py` on {platform.machine()}, Python {platform.python_version()},
two shared cores, one worker. Makespan, bound and roofline in cycles; the gap is
`(makespan - bound) / makespan`; seconds are the wall time of the whole command. Every plan passed
the checker. The bound holds for the tiles that were chosen, the roofline for any tiles.

"""
    options.output.write_text(text + HEAD + "\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
