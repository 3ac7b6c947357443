"""The pinned requirements: each package once, with hashes, without addresses, as pyproject asks."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PINNED = (ROOT / ".ci" / "requirements.txt").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def asked_for(lines: list[str]) -> Iterator[Requirement]:
    """Yield requirements, those of extras of this project in place of their names."""
    for requirement in map(Requirement, lines):
        if requirement.name == PROJECT["project"]["name"]:
            for extra in sorted(requirement.extras):
                yield from asked_for(PROJECT["project"]["optional-dependencies"][extra])
        else:
            yield requirement


def versions() -> dict[str, str]:
    """Return the version of each package."""
    return dict(re.findall(r"^([\w.-]+)==(\S+) \\$", PINNED, flags=re.MULTILINE))


def test_every_package_is_pinned_once_with_its_hashes_and_without_an_address() -> None:
    packages = re.split(r"\n(?=\w)", PINNED.rstrip("\n"))
    package = re.compile(r"[a-z0-9.-]+==[\w.+]+( \\\n    --hash=sha256:[0-9a-f]{64})+")
    assert [text for text in packages if not package.fullmatch(text)] == []
    assert len(versions()) == len(packages)


def test_the_versions_are_what_the_project_asks_for() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [*PROJECT["project"]["dependencies"], *extras["test"], *extras["docs"]]
    pinned = versions()
    for requirement in asked_for([*lines, *PROJECT["build-system"]["requires"]]):
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), requirement
