"""YAML text to plain data, strictly."""

from collections.abc import Hashable
from typing import Any

import yaml

from spmilp.errors import FileError

A_MACHINE = "the fields of a machine (name, core_kinds, scratchpads, dram)"


def fields_of(data: bytes, origin: str, expected: str = A_MACHINE) -> dict[str, object]:
    """Return the fields of a YAML file whose top is a mapping.

    Parameters
    ----------
    expected
        What a file that is no mapping is told that it should hold.

    Raises
    ------
    FileError
        If it is no YAML, has a field twice, or is no mapping.
    """
    try:
        # The loader descends from yaml.SafeLoader: it makes plain data only.
        content = yaml.load(data, _UniqueKeys)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" at line {mark.line + 1}" if mark else ""
        raise FileError(f"{origin}: no valid YAML{where}: {error.problem}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FileError(f"{origin}: no valid YAML: {reason}") from error
    if not isinstance(content, dict):
        raise FileError(f"{origin}: expected {expected}, got {type(content).__name__}")
    return content


class _UniqueKeys(yaml.SafeLoader):
    """Refuses a mapping in which a key occurs twice; YAML forbids it, PyYAML takes the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return the mapping of a node."""
        seen: set[str] = set()
        names = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for key in names:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the field {key.value} is given twice", key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)
