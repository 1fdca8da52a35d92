"""Whose write has a commit held: whom an error names, or who may be meant."""

from __future__ import annotations

from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.layout.errors import LayoutError
from reconciler.loading.atfault import FAULT, AtFault, at_fault
from reconciler.loading.loader import Proposal

ONE, TWO, OTHER = (
    Intent(Key("toys.example.org", cluster, "default", name), "ann", b"{}", 0)
    for cluster, name in (("a", "one"), ("a", "two"), ("b", "other"))
)
WRITES = [ONE, TWO, OTHER]
FILES = {intent.key: f"{intent.key.name}.yaml" for intent in WRITES}


def found(held: dict[str, list[str]], *faults: str, writes: list[Intent] = WRITES) -> AtFault:
    """`held`: the files that errors of a workspace name."""
    errors = {path: [LayoutError(file, 1, 1, "is bad") for file in files] for path, files in held.items()}
    return at_fault(Proposal(errors, faults, lambda: None), writes, FILES, lambda cluster: f"root:{cluster}")


def test_whose_file_an_error_names_is_told_that_error() -> None:
    at = found({"root:a": ["one.yaml", "x.yaml"]})
    assert (at.guilty.keys(), at.suspects) == ({ONE.key}, {})
    refused = at.guilty[ONE.key]
    assert (refused.code, [cause["message"] for cause in refused.details["causes"]]) == (422, ["one.yaml:1:1: is bad"])


def test_where_none_is_named_it_may_be_any_of_the_workspace_or_any_at_all() -> None:
    assert found({"root:a": ["x.yaml"]}).suspects.keys() == {ONE.key, TWO.key}
    assert found({"root:c": ["x.yaml"]}).suspects.keys() == {ONE.key, TWO.key, OTHER.key}


def test_the_only_one_that_can_be_is() -> None:
    at = found({"root:b": ["x.yaml"]})
    assert at.guilty.keys() == {OTHER.key}
    assert "x.yaml" in str(at.guilty[OTHER.key].details)
    assert found({"root:c": ["x.yaml"]}, writes=[ONE]).guilty.keys() == {ONE.key}


def test_who_is_guilty_is_no_suspect_besides() -> None:
    at = found({"root:a": ["one.yaml"], "root:c": ["x.yaml"]})
    assert (at.guilty.keys(), at.suspects.keys()) == ({ONE.key}, {TWO.key, OTHER.key})


def test_a_fault_of_the_program_is_told_as_one() -> None:
    assert found({"root:b": ["other.yaml"]}, "root:b").guilty == {OTHER.key: FAULT}
