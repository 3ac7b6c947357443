"""The tables say all that it takes to run a plan."""

from dataclasses import replace

import numpy as np
import pytest

from checker.worked_example import PLAN, PROBLEM
from export.running_tables import Player
from export.subjects import (
    inputs_of,
    lowered,
    replayed,
    subject,
    two_strips_subject,
    with_hostile_names,
)
from spmilp.checker.values.kernels.registry import computed_kinds
from spmilp.checker.values.replay import compute_network
from spmilp.export.errors import ExportError
from spmilp.export.tables.all_tables import all_tables
from spmilp.export.tables.codes import ATTRIBUTES, OPERATORS
from spmilp.export.tables.layouts import LAYOUTS
from spmilp.export.tables.operators import attribute_rows
from spmilp.export.tables.table import NONE, Column, Layout, Table, Texts, Words
from spmilp.frontend.graph import Operator
from spmilp.lowering.lower import lower
from tests.lowering.builders import NetworkBuilder
from values.sequential import MACHINE, sequential_plan
from values.test_lowered_networks import cut


@pytest.mark.parametrize("in_place", [True, False])
def test_tables_alone_run_strips_with_halos(in_place: bool) -> None:
    given, inputs = two_strips_subject(in_place)
    outputs = Player(all_tables(given)).run(inputs)
    for name, expected in replayed(given, inputs).items():
        np.testing.assert_array_equal(outputs[name], expected)


@pytest.mark.parametrize(
    ("model", "pieces", "parts", "layout"),
    [
        ("resnet8_int8", 3, 2, "nhwc"),
        ("ds_cnn_int8", 5, 1, "nchw"),
        ("autoencoder_int8", 4, 3, "nchw"),
        ("ds_cnn_f16", 2, 3, "nchw"),
        ("autoencoder_f32", 3, 2, "nchw"),
        ("tiny_lstm_f32", 2, 1, "nchw"),
    ],
)
def test_tables_alone_run_a_network_to_the_bit(
    model: str, pieces: int, parts: int, layout: str
) -> None:
    given = lowered(model, pieces, parts, layout)
    inputs = inputs_of(given, seed=5)
    outputs = Player(all_tables(given)).run(inputs)
    for name, expected in replayed(given, inputs).items():
        np.testing.assert_array_equal(outputs[name], expected)


def test_tables_alone_add_up_partial_sums_under_views() -> None:
    builder = NetworkBuilder()
    data = builder.matmul_under_views(builder.input((2, 4, 10)), 6)
    network = builder.network(builder.matmul_under_views(data, 5))
    problem = lower(network, MACHINE, cut(network, 2, 3))
    given = subject(problem, sequential_plan(problem), network=network)
    inputs = {"input0": np.random.default_rng(0).integers(-3, 4, (2, 4, 10)).astype(np.float32)}
    expected = compute_network(network, inputs)
    for name, found in Player(all_tables(given)).run(inputs).items():
        np.testing.assert_array_equal(found, expected[name])


def test_every_operator_that_the_replay_computes_has_a_number() -> None:
    assert computed_kinds() <= set(OPERATORS)
    assert len(set(OPERATORS)) == len(OPERATORS)
    assert len(set(ATTRIBUTES)) == len(ATTRIBUTES)


def test_numbers_of_operators_and_attributes_stay_what_they_were() -> None:
    assert (OPERATORS.index("Conv"), OPERATORS.index("Xor")) == (10, 100)
    assert (ATTRIBUTES.index("pads"), ATTRIBUTES.index("value")) == (34, 49)


def test_no_two_layouts_have_a_code_or_a_name_in_common() -> None:
    for names in ("code", "table", "struct"):
        found = [getattr(layout, names) for layout in LAYOUTS]
        assert len(set(found)) == len(found)


@pytest.mark.parametrize("widths", [("u32", "u64"), ("u64", "u32")])
def test_a_layout_that_a_compiler_would_pad_is_refused(widths: tuple[str, str]) -> None:
    columns = tuple(Column(f"c{i}", width, "") for i, width in enumerate(widths))
    with pytest.raises(ValueError, match="padding"):
        Layout(code=1, table="t", struct="s", says="", columns=columns)


def test_a_number_that_does_not_fit_its_field_names_row_field_and_limit() -> None:
    layout = Layout(code=1, table="t", struct="s", says="", columns=(Column("run", "u32", ""),))
    with pytest.raises(ExportError, match=r"row 1 of t: run is 4294967296, outside \[0, 429496729"):
        Table(layout=layout, rows=((5,), (2**32,)))


def test_without_a_model_the_tables_of_the_plan_are_there_and_those_of_the_network_empty() -> None:
    tables = all_tables(subject())
    assert len(tables.of("tasks").rows) == len(PROBLEM.tasks)
    assert len(tables.of("residencies").rows) == len(PLAN.residencies)
    assert tables.of("steps").rows == tables.of("ports").rows == ()
    assert tables.image == b""
    multicast = tables.of("transfers").rows[1]
    assert multicast[6] == 2
    scratch = tables.of("residencies").rows[9]
    assert scratch[5] == NONE


def test_names_change_nothing_but_texts() -> None:
    plain, hostile = all_tables(subject()), all_tables(with_hostile_names())
    for a, b in zip(plain.tables, hostile.tables, strict=True):
        named = [column.name == "name" for column in a.layout.columns]
        for row_a, row_b in zip(a.rows, b.rows, strict=True):
            kept = [(x, y) for x, y, name in zip(row_a, row_b, named, strict=True) if not name]
            assert all(x == y for x, y in kept)
    assert plain.words == hostile.words


def test_a_task_of_no_group_has_no_steps_and_says_why() -> None:
    given, _ = two_strips_subject()
    tasks = (replace(given.problem.tasks[0], tile=None, name="lost"), *given.problem.tasks[1:])
    changed = subject(replace(given.problem, tasks=tasks), given.plan, network=given.network)
    with pytest.raises(ExportError, match="task lost is no tile of a group"):
        all_tables(changed)


def test_an_attribute_that_does_not_fit_a_word_is_named() -> None:
    wide = Operator(
        name="far",
        kind="Slice",
        inputs=("x",),
        output="y",
        attributes={"ends": (2**63 - 1,), "axes": (2**31,)},
    )
    with pytest.raises(ExportError, match=r"operator far: axes is 2147483648, outside \[-2147"):
        attribute_rows(wide, Words(), Texts())
    words = Words()
    attribute_rows(replace(wide, attributes={"ends": (2**63 - 1,)}), words, Texts())
    assert words.values == [2**31 - 1]
