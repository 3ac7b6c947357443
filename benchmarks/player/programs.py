"""Builds and runs the player of an export, and says what its outputs should be."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spmilp.checker.values.inputs import random_inputs
from spmilp.checker.values.replay import replay
from spmilp.export.formats import export
from spmilp.export.subject import Subject
from spmilp.frontend.graph import Network
from spmilp.plan.plan import Plan
from spmilp.problem.problem import Problem

Arrays = Mapping[str, NDArray[Any]]

CFLAGS: Mapping[str, str] = {
    "plain": "-O2",
    "address": "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all",
    "thread": "-O1 -g -fsanitize=thread",
}
"""Compiler flags by what a program is built for; a sanitizer's finding ends it with an error."""

HOST_TOOLS, ARM_TOOLS = ("gcc", "make"), ("arm-none-eabi-gcc", "make", "qemu-system-arm")

QEMU = (
    *("qemu-system-arm", "-M", "mps2-an385", "-display", "none", "-serial", "none"),
    *("-monitor", "none", "-semihosting-config", "enable=on,target=native", "-kernel"),
)


def missing(tools: Sequence[str]) -> list[str]:
    """Return those of some programs that are not installed."""
    return [tool for tool in tools if shutil.which(tool) is None]


def write_player(subject: Subject, folder: Path) -> None:
    """Write packed tables and the player into a folder."""
    _write(subject, "player", folder)


def write_code(subject: Subject, folder: Path) -> None:
    """Write the plan as straight code into a folder."""
    _write(subject, "c-code", folder)


def _write(subject: Subject, format_: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = export(subject, [format_])
    made.require_all()
    made.write(folder)


def expected_outputs(
    problem: Problem, plan: Plan, network: Network, seed: int = 0
) -> tuple[Arrays, Arrays]:
    """Return random inputs and what the value replay computes from them."""
    inputs = random_inputs(network, seed)
    return inputs, replay(problem, plan, network, inputs)


def build(
    folder: Path,
    target: str,
    kind: str = "plain",
    program: str = "",
    flags: str = "",
    variables: Sequence[str] = (),
) -> Path:
    """Build a target of the folder's makefile and return the program that it makes.

    Parameters
    ----------
    program
        What the target makes, where it is not its name.
    flags
        Of the compiler, besides those of the kind.
    variables
        Of make, besides those.
    """
    made = folder / (program or target)
    makefile = "player.mk" if (folder / "player.mk").exists() else "code.mk"
    cflags = f"CFLAGS={CFLAGS[kind]} {flags}"
    _run(["make", "-s", "-B", "-f", makefile, target, "CC=gcc", cflags, *variables], folder)
    return made.rename(made.with_name(f"{made.name}_{kind}"))


def play(
    command: Sequence[str | Path], network: Network, inputs: Arrays, folder: Path
) -> dict[str, NDArray[Any]]:
    """Run a program of a host on inputs and return its outputs.

    Parameters
    ----------
    command
        The program and its arguments, without the files.
    """
    given = _write_inputs(network, inputs, folder)
    results = [folder / f"output{number}.bin" for number in range(len(network.outputs))]
    _run([*command, *given, *results], folder)
    return _read_outputs(network, results)


def play_on_bare_metal(
    program: Path, network: Network, inputs: Arrays, folder: Path
) -> dict[str, NDArray[Any]]:
    """Run a program for an Arm MPS2 in QEMU and return its outputs."""
    _write_inputs(network, inputs, folder)
    results = [folder / f"output{number}.bin" for number in range(len(network.outputs))]
    _run([*QEMU, program], folder)
    return _read_outputs(network, results)


def loaded_bytes(program: Path) -> int:
    """Return the bytes of an ELF file's text and data."""
    said = subprocess.run(
        ["arm-none-eabi-size", program], capture_output=True, text=True, check=True
    )
    text, data = said.stdout.splitlines()[1].split()[:2]
    return int(text) + int(data)


def _write_inputs(network: Network, inputs: Arrays, folder: Path) -> list[Path]:
    files = []
    for number, name in enumerate(network.inputs):
        files.append(folder / f"input{number}.bin")
        files[-1].write_bytes(np.ascontiguousarray(inputs[name]).tobytes())
    for number in range(len(network.outputs)):
        (folder / f"output{number}.bin").unlink(missing_ok=True)
    return files


def _read_outputs(network: Network, files: Sequence[Path]) -> dict[str, NDArray[Any]]:
    found = {}
    for name, file in zip(network.outputs, files, strict=True):
        tensor = network.tensors[name]
        found[name] = np.frombuffer(file.read_bytes(), tensor.dtype).reshape(tensor.shape)
    return found


def _run(command: Sequence[str | Path], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = (done.stderr + done.stdout).strip()
        raise RuntimeError(f"{command[0]} ends with {done.returncode}: {said[-3000:]}")
