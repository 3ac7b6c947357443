"""Mutants of source files, as cosmic-ray makes them, and how to run one."""

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMutant:
    """One change of one file: the ``number``-th of an operator of cosmic-ray."""

    path: Path
    operator: str
    number: int
    line: int

    @property
    def key(self) -> tuple[str, str, str]:
        """File, operator and number, as a table names a mutant."""
        return str(self.path), self.operator.removeprefix("core/"), str(self.number)

    def source(self) -> str:
        """Return the changed file."""
        original = self.path.read_text()
        return mutate_code(original, get_operator(self.operator)(), self.number) or original

    def changes_texts_only(self) -> bool:
        """Say whether nothing differs but f-strings and annotations."""
        try:
            return _without_texts(self.source()) == _without_texts(self.path.read_text())
        except SyntaxError:
            return False


def mutants_of(path: Path) -> Iterator[CodeMutant]:
    """Yield the mutants of a file; none of a table of contents."""
    if path.name == "__init__.py":
        return
    nodes = list(ast_nodes(get_ast_from_path(path)))
    for name in operator_names():
        operator = get_operator(name)
        if operator.arguments():
            continue
        places = [begin for node in nodes for begin, _ in operator().mutation_positions(node)]
        for number, (line, _) in enumerate(places):
            yield CodeMutant(path=path, operator=name, number=number, line=line)


def install(mutant: CodeMutant, reloaded: Sequence[str]) -> None:
    """Let this process import the changed file; packages that know the original are forgotten."""
    for name in [name for name in sys.modules if name.startswith(tuple(reloaded))]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(mutant))


class _Finder(MetaPathFinder):
    def __init__(self, mutant: CodeMutant) -> None:
        self._name = ".".join(mutant.path.with_suffix("").parts)
        self._loader = _Loader(self._name, str(mutant.path))
        self._loader.changed = mutant.source()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        return spec_from_file_location(name, self._loader.path, loader=self._loader)


class _Loader(SourceFileLoader):
    changed = ""

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.changed, self.path, "exec")


class _Blank(ast.NodeTransformer):
    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return ast.Constant("")

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant("")
        return self.generic_visit(node)


def _without_texts(source: str) -> str:
    return ast.dump(_Blank().visit(ast.parse(source)))
