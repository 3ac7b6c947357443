"""Run the examples of README and docs, and write what they print into the pages.

    python docs/examples.py                 # all pages; the plan of README's first command is kept
    python docs/examples.py --first         # run README's first command again too (a minute)

The ``sh`` and ``python`` blocks of a page are run one after the other, in one empty folder with
links to ``models``, ``instances``, ``benchmarks`` and ``docs``; a ``text`` block right behind one
is what it prints. A comment in the line above a block says what else it is:

``<!-- file: NAME -->``
    The block is the content of a file in that folder.
``<!-- not run: REASON -->``
    The block is only shown.

How far a search comes in its time depends on the machine. So the plan of README's first command is
kept in ``docs/example``, and every page shows figures and pictures of that one plan.
"""

import argparse
import glob
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "docs" / "example"
LINKED = ("models", "instances", "benchmarks", "docs")
PAGES = (
    "README.md",
    "docs/tutorial.md",
    "docs/fit_a_network.md",
    "docs/compare_solvers.md",
    "docs/packing.md",
    "docs/instances.md",
    "docs/checker.md",
    "docs/explain.md",
    "docs/pins.md",
)
BLOCK = re.compile(
    r"(?:<!-- (?P<kind>file|not run): (?P<detail>[^\n]*) -->\n)?"
    r"```(?P<language>\w+)\n(?P<content>.*?)```\n"
    r"(?:\n```text\n(?P<printed>.*?)```\n)?",
    flags=re.DOTALL,
)
FIRST = re.compile(r"(The first one ends with\n\n```text\n).*?(```)", flags=re.DOTALL)
TIMES = re.compile(r"[\d.]+ (s|ms|µs)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A block of a page.

    Parameters
    ----------
    file
        Name of the file whose content the block is; ``None`` if it is a command or code.
    printed
        What the page shows of its output; ``None`` where it shows nothing.
    """

    language: str
    content: str
    file: str | None
    printed: str | None


def examples(page: str) -> Iterator[Example]:
    """Yield the blocks of a page's text that are files, or are run."""
    for found in BLOCK.finditer(page):
        is_file = found["kind"] == "file"
        if is_file or (found["kind"] is None and found["language"] in ("sh", "python")):
            yield Example(
                language=found["language"],
                content=found["content"],
                file=found["detail"] if is_file else None,
                printed=found["printed"],
            )


class Session:
    """A folder in which the examples of one page are run, and what its Python code has defined."""

    def __init__(self, folder: Path) -> None:
        """Make the folder look like a checkout in which README's first command has been run."""
        self._folder = folder
        self._defined: dict[str, object] = {}
        for name in LINKED:
            (folder / name).symlink_to(ROOT / name)
        shutil.copytree(KEPT / "resnet8", folder / "out" / "resnet8")

    def printed_by(self, example: Example) -> str:
        """Write a file, or run a block and return what it prints, errors last.

        Raises
        ------
        RuntimeError
            If commands fail whose output the page does not show.
        """
        if example.file is not None:
            (self._folder / example.file).write_text(example.content, encoding="utf-8")
            return ""
        return self._of_python(example) if example.language == "python" else self._of_shell(example)

    def _of_python(self, example: Example) -> str:
        import matplotlib as mpl

        mpl.use("agg")
        printed = io.StringIO()
        with chdir(self._folder), redirect_stdout(printed):
            exec(compile(example.content, "<example>", "exec"), self._defined)
        return printed.getvalue()

    def _of_shell(self, example: Example) -> str:
        """Run commands one by one, those of spmilp in this process: it has loaded its libraries."""
        printed = ""
        for line in example.content.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            is_own = words[:1] == ["spmilp"] and not {"|", "<", ">", "&&"} & set(words)
            output, code = self._of_command(words[1:]) if is_own else self._of_bash(line)
            if code != 0 and example.printed is None:
                raise RuntimeError(f"{line} ended with {code}:\n{output}")
            printed += output
        return printed

    def _of_command(self, words: list[str]) -> tuple[str, int]:
        from spmilp.cli.main import main

        printed, failed = io.StringIO(), io.StringIO()
        code: str | int | None = 0
        with chdir(self._folder), redirect_stdout(printed), redirect_stderr(failed):
            found = [sorted(glob.glob(word)) or [word] for word in words]
            # The log has times, and is no part of the answer.
            found += [["--quiet"]] if words[:1] == ["solve"] else []
            before, sys.argv = sys.argv, ["spmilp", *chain.from_iterable(found)]
            width, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "200"
            try:
                main(perf_counter())
            except SystemExit as ended:
                code = ended.code
            finally:
                sys.argv = before
                if width is None:
                    del os.environ["COLUMNS"]
                else:
                    os.environ["COLUMNS"] = width
        return printed.getvalue() + failed.getvalue(), int(code or 0)

    def _of_bash(self, line: str) -> tuple[str, int]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=self._folder,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr, done.returncode


def without_times(text: str) -> list[str]:
    """Return the words of an output except for times, on which widths of columns depend too."""
    return TIMES.sub("", text).split()


def with_new_output(page: str, session: Session) -> str:
    """Return a page's text with what its examples print now."""

    def rewritten(found: re.Match[str]) -> str:
        (example, *_) = [*examples(found[0]), None]
        if example is None:
            return found[0]
        output = session.printed_by(example)
        if found["printed"] is None or without_times(output) == without_times(found["printed"]):
            return found[0]
        start = found.start("printed") - found.start()
        end = found.end("printed") - found.start()
        lines = "".join(f"{line.rstrip()}\n" for line in output.splitlines())
        return found[0][:start] + lines + found[0][end:]

    return BLOCK.sub(rewritten, page)


def run_the_first_command() -> None:
    """Run README's first command, and keep its plan."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    command = next(line for line in readme.splitlines() if "spmilp solve" in line)
    words = shlex.split(command.partition(".venv/bin/spmilp ")[2])
    subprocess.run([sys.executable, "-m", "spmilp", *words], cwd=ROOT, check=True)
    shutil.rmtree(KEPT / "resnet8", ignore_errors=True)
    shutil.copytree(ROOT / "out" / "resnet8", KEPT / "resnet8")


def answer_of_the_first_command() -> str:
    """Return what README's first command prints of the plan that is kept."""
    import spmilp
    from spmilp.cli import output
    from spmilp.cli.solve import answer_of
    from spmilp.result import Origin
    from spmilp.source import load

    model = ROOT / "models" / "resnet8_int8.onnx"
    network, _ = load(model, "mesh4x4")
    origin = Origin(model=str(model), dim={}, network=network)
    result = replace(spmilp.read(KEPT / "resnet8"), origin=origin, seconds=60.0)
    files = tuple(Path("out") / "resnet8" / name for name in ("problem.json", "plan.json"))
    shown = answer_of(result, files, interrupted=False)
    with redirect_stdout(io.StringIO()) as printed:
        output.print_answer(None, shown, as_json=False)
    return "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())


def show_the_first_answer() -> None:
    """Write what the kept plan's answer is now into README, and keep it."""
    printed = answer_of_the_first_command()
    (KEPT / "printed.txt").write_text(printed, encoding="utf-8")
    page = ROOT / "README.md"
    readme = page.read_text(encoding="utf-8")
    page.write_text(FIRST.sub(lambda found: found[1] + printed + found[2], readme), "utf-8")


def draw() -> None:
    """Draw the kept plan for README's first screen."""
    import matplotlib as mpl

    import spmilp

    mpl.use("agg")
    result = spmilp.read(KEPT / "resnet8")
    fullest = result.memories.query("kind == 'spm'").sort_values("peak").iloc[-1]["name"]
    result.timeline(chain=True).savefig(KEPT / "timeline.png", dpi=70)
    result.memory_map([fullest]).savefig(KEPT / "memory_map.png", dpi=70)


def main() -> None:
    """Rewrite the pages."""
    parser = argparse.ArgumentParser(description="Write what the examples print into the pages.")
    parser.add_argument("--first", action="store_true", help="run README's first command again")
    parser.add_argument("pages", nargs="*", default=PAGES)
    given = parser.parse_args()
    if given.first:
        run_the_first_command()
        draw()
    if "README.md" in given.pages:
        show_the_first_answer()
    for name in given.pages:
        path = ROOT / name
        before = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            after = with_new_output(before, Session(Path(folder)))
        path.write_text(after, encoding="utf-8")
        print(f"{name}: {'rewritten' if after != before else 'as it was'}")


if __name__ == "__main__":
    main()
