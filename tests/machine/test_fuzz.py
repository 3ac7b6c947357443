"""Whatever a machine file contains, reading it gives a machine or one clear message."""

import copy
from collections.abc import Callable, Iterator

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from spmilp.errors import FileError
from spmilp.machine.read import read_machine
from tests.machine.small import SMALL, content

pytestmark = pytest.mark.full

JUNK = st.sampled_from(
    [
        *(None, True, -1, 0, 1, 3, 10**30, 1.5, -0.0, float("nan"), float("inf")),
        *("", "x", "*", "[", "r_0_0", "1/2", "\x00", "dram", [], [[]], {}, {"a": 1}, [1, "b"]),
    ]
)


def paths_in(value: object, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path of every part of a file."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from paths_in(part, (*path, key))


def replaced(original: object, path: tuple, junk: object) -> object:
    changed = copy.deepcopy(original)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = junk
    return changed


FILE_PATHS = tuple(paths_in(content()))


def complaint(read: Callable[[], object]) -> str:
    """Return the message of a file error, nothing when reading succeeds."""
    try:
        read()
    except FileError as error:
        return str(error)
    return ""


@pytest.mark.full
@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.sampled_from(FILE_PATHS), JUNK)
def test_a_field_of_any_content_gives_a_machine_or_a_message(path: tuple, junk: object) -> None:
    data = yaml.safe_dump(replaced(content(), path, junk)).encode()
    said = complaint(lambda: read_machine(data, "test.yaml"))
    assert not said or said.startswith("test.yaml: ")


@pytest.mark.full
@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, len(SMALL)), st.binary(min_size=1, max_size=6))
def test_bytes_put_anywhere_give_a_machine_or_a_message(place: int, extra: bytes) -> None:
    text = SMALL.encode()
    said = complaint(lambda: read_machine(text[:place] + extra + text[place:], "test.yaml"))
    assert not said or said.startswith("test.yaml: ")
