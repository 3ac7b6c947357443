"""``spmilp solvers``: every solver and policy, with its source, what it decides and its limits."""

from dataclasses import asdict

from spmilp.cli import arguments
from spmilp.cli import output as out


def solvers(as_json: arguments.AsJson = False) -> None:
    """List the solvers and policies: source, what each decides, and its limits."""
    from spmilp.registry import list_solvers

    found = list_solvers()
    if as_json:
        out.print_json({"solvers": [asdict(one) for one in found]})
        return
    rows = [(one.name, one.source, one.decides, one.limits) for one in found]
    out.console().print(out.table(("name", "source", "decides", "limits"), rows))
