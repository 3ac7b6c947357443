"""Model files by path, or by the name of a graph that the ``onnx`` package brings along.

It loads no library, so that what needs no model does not wait for any.
"""

from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from spmilp.errors import FileError

LIGHT_PREFIX = "onnx:"
"""Before the name of a graph that the installed ``onnx`` package brings along."""


def find_model(name: str) -> Path:
    """Return the file that a model's name stands for.

    That is a path, or ``onnx:light_resnet50`` for a graph of the installed ``onnx`` package. Raises
    a ``FileError`` if there is none; the message lists names that are near.
    """
    if name.startswith(LIGHT_PREFIX):
        return _find_light_model(name.removeprefix(LIGHT_PREFIX))
    path = Path(name)
    if path.is_dir():
        raise FileError(f"{name} is a directory; name a model file in it")
    if not path.exists():
        raise FileError(f"there is no model file {name}{near_files(path)}")
    return path


def light_models() -> dict[str, Path]:
    """Return the graphs of the installed ``onnx`` package by name, in order of name."""
    spec = find_spec("onnx")
    if spec is None or spec.origin is None:
        return {}
    folder = Path(spec.origin).parent / "backend" / "test" / "data" / "light"
    return {path.stem: path for path in sorted(folder.glob("*.onnx"))}


def _find_light_model(name: str) -> Path:
    known = light_models()
    if name in known:
        return known[name]
    near = get_close_matches(name, known, n=3, cutoff=0.5) or list(known)
    listed = ", ".join(LIGHT_PREFIX + other for other in near)
    raise FileError(f"the onnx package has no graph {name!r}; it has {listed}")


def near_files(path: Path) -> str:
    """Return a hint at what may have been meant, or nothing."""
    there = sorted(path.parent.iterdir()) if path.parent.is_dir() else []
    siblings = [one.name for one in there if one.suffix in (".onnx", ".tflite")]
    near = [str(path.parent / n) for n in get_close_matches(path.name, siblings, n=3)]
    near += [LIGHT_PREFIX + n for n in get_close_matches(path.stem, light_models(), n=1)]
    return f"; did you mean {' or '.join(near)}?" if near else ""
