"""Explain reads, computes nothing, and says what will run and what ran."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tenfold as tn


def test_explain_computes_nothing() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    with tn.profile() as p:
        text = x.explain()
    assert p.launches == 0
    assert repr(x).startswith("<Array float64[2] pending")
    assert "add(%0, %1) float64[2]" in text


def test_counters_agree_with_the_steps_that_were_named() -> None:
    x = tn.asarray(np.ones((4, 4)))
    y = tn.sum(tn.exp(x @ x) + x, axis=0)
    steps = y.explain("executed").splitlines()[1:]
    with tn.profile() as p:
        y.wait()
    assert p.launches == len(steps) == 4
    assert p.multiply_adds == 64
    assert "64 multiply-adds" in steps[0]
    assert [event.name for event in p.events] == [step.split()[0] for step in steps]


def test_shared_node_stands_once() -> None:
    x = tn.asarray([1.0])
    shared = tn.exp(x)
    text = tn.explain(shared * shared + shared, stage="expression")
    assert text.count("exp(") == 1


def test_several_roots_are_explained_together() -> None:
    x = tn.exp(tn.asarray([1.0]))
    assert tn.explain(x + 1, x + 2).startswith("expression: 6 nodes, 3 operations, kind MAP")


def test_computed_array_says_that_nothing_is_left() -> None:
    x = (tn.asarray([1.0]) + 1).wait()
    assert "nothing is left to run" in x.explain()


def test_analyze_computes_and_says_what_each_step_took() -> None:
    x = tn.asarray([1.0, 2.0]) + 1
    text = x.explain(analyze=True)
    assert re.search(r"measured: [\d.]+ us in 1 step\n  add: [\d.]+ us", text)
    assert repr(x) == "Array([2., 3.], dtype=float64)"


def test_movement_moves_what_it_takes_be_its_input_as_large_as_it_may() -> None:
    x = tn.asarray(np.ones(1000))[:10]
    assert "index -> float64[10]: 160 bytes" in x.explain("executed")


def test_dot_has_a_box_for_each_node_and_an_edge_for_each_use() -> None:
    x = tn.asarray([1.0])
    text = (x * x + 0).explain(format="dot")
    assert text.startswith("digraph tenfold {")
    assert text.endswith("}")
    assert len(re.findall(r"^  n\d+ \[label=", text, re.M)) == 4
    assert len(re.findall(r"^  n\d+ -> n\d+;", text, re.M)) == 4


def test_labels_of_dot_are_quoted() -> None:
    @tn.op(shape=(), dtype="float64", reference=lambda x, *, text: np.float64(0))
    def labelled(x: tn.Array, *, text: str) -> tn.Array:
        """0."""

    text = labelled(tn.asarray([1.0]), text='"a\\b"').explain(format="dot")
    (label,) = re.findall(r'label="(%1.*?)"\];', text)
    assert not re.search(r'(?<!\\)(\\\\)*"', label)


def test_long_graphs_are_shown_by_their_ends() -> None:
    x = tn.asarray([1.0])
    with tn.options(pending_depth=0):
        for _ in range(5_000):
            x = x + x
    for stage in ("expression", "executed"):
        lines = x.explain(stage).splitlines()
        assert len(lines) < 1_100
        assert any("more" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [({"stage": "planned"}, "no stage 'planned'"), ({"format": "html"}, "no format 'html'")],
)
def test_what_does_not_exist_is_refused(arguments: dict[str, str], rule: str) -> None:
    with pytest.raises(tn.errors.UnsupportedError, match=rf"(?s)explain: there is {rule}.*remedy"):
        tn.explain(tn.asarray([1.0]), **arguments)


def test_nothing_is_explained_as_nothing() -> None:
    assert tn.explain() == "nothing to explain"
