"""From a plan, and the network where it is known, to all tables."""

from spmilp.export.subject import Subject
from spmilp.export.tables import layouts
from spmilp.export.tables.codes import SCHEMES
from spmilp.export.tables.image import Image
from spmilp.export.tables.plan_tables import PlanTables
from spmilp.export.tables.programs import Programs
from spmilp.export.tables.table import Table, Tables, Texts, Words
from spmilp.frontend.graph import Network


def all_tables(subject: Subject) -> Tables:
    """Return every table; those that need the network are empty where it is not known.

    Raises
    ------
    ExportError
        If a number does not fit its field, or an operator cannot be expressed.
    TooManyEventsError
        If the machine has too few events for the command lists.
    ValuesError
        If the model has no values of a constant.
    """
    words, texts = Words(), Texts()
    texts.add("")
    plan = PlanTables(subject, words, texts)
    nothing = [(0, 0)] * len(subject.problem.tasks)
    workspace, image = 0, b""
    network_tables = [Table(layout=each, rows=()) for each in layouts.NETWORK_LAYOUTS]
    programs = nothing
    if subject.network is not None:
        made = Programs(subject, subject.network, words, texts)
        programs = [
            made.add(subject.problem.tasks[placement.task], placement)
            for placement in subject.plan.placements
        ]
        workspace = made.workspace
        network_tables, image = _network_tables(subject, subject.network, made, words, texts)
    tables = (
        _summary(subject, workspace),
        *(*plan.hardware(), *plan.data(), *plan.work(programs), *plan.moves()),
        *(*plan.commands(), *network_tables),
    )
    return Tables(tables=tables, words=tuple(words.values), texts=bytes(texts.data), image=image)


def _summary(subject: Subject, workspace: int) -> Table:
    makespan = subject.plan.claim.makespan
    frequency = subject.problem.machine.frequency or 0
    lists = subject.lists
    row = (makespan, workspace, frequency, lists.events, SCHEMES[lists.scheme])
    return Table(layout=layouts.SUMMARY, rows=(row,))


def _network_tables(
    subject: Subject, network: Network, programs: Programs, words: Words, texts: Texts
) -> tuple[list[Table], bytes]:
    image = Image(subject, network, words, texts)
    rows = {
        layouts.PORTS: (image.ports(), []),
        layouts.SEGMENTS: (image.segments, image.segment_names),
        layouts.VALUES: (programs.values.rows, programs.values.names),
        layouts.SCALES: (programs.scales.rows, []),
        layouts.PIECES: (programs.views.pieces, []),
        layouts.VIEWS: (programs.views.rows, []),
        layouts.STEPS: (programs.steps, programs.step_names),
        layouts.ATTRIBUTES: (programs.attributes, []),
    }
    tables = [
        Table(layout=layout, rows=tuple(each), notes=tuple(notes))
        for layout, (each, notes) in rows.items()
    ]
    return tables, bytes(image.data)
