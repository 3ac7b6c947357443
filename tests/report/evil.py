"""A page whose every name from a file would be markup, a script or a mark of the template."""

from dataclasses import replace

from report.duo import duo_plan, duo_problem
from spmilp.problem.problem import Problem
from spmilp.report.page import Page, report_page

EVIL = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked = 1">',
    "</script><script>window.hacked = 1</script>",
    "{{plan}} {{script}} $& \\1 &lt;b&gt;",
)


def with_evil_names(problem: Problem) -> Problem:
    """Return a problem whose every name would be markup, a script or a mark of the template."""
    machine = replace(
        problem.machine,
        name=EVIL[0],
        cores=tuple(replace(each, name=f"{EVIL[1]}{each.index}") for each in problem.machine.cores),
        engines=tuple(replace(each, name=EVIL[2]) for each in problem.machine.engines),
    )
    return replace(
        problem,
        name=EVIL[3],
        machine=machine,
        tensors=tuple(replace(each, name=EVIL[0]) for each in problem.tensors),
        buffers=tuple(replace(each, name=EVIL[1]) for each in problem.buffers),
        tasks=tuple(replace(each, name=EVIL[2], tile=None) for each in problem.tasks),
    )


def duo_page(problem: Problem | None = None) -> Page:
    named = problem or duo_problem()
    return report_page(named, duo_plan(), named.name, [("makespan", "72 cycles", EVIL[1])])
