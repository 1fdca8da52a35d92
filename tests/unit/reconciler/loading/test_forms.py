"""What every workspace has comes from a form, and is what it would be without one, whatever the workspaces say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML, Files
from support.loadedfleet import LoadedFleet

from apiserver.model.keys import Key
from apiserver.storage.protocol import Put
from apiserver.storage.templates import Form, Kind, cut, fill, form_of
from reconciler.loading.forms import Example, Forms, Make, Nobody, Signature
from reconciler.loading.siblings import Siblings

R = "workspaces/root"


def workspace(labels: dict[str, str] | None = None, **spec: Any) -> str:
    value = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {}, "spec": spec}
    if labels is not None:
        value["metadata"] = {"annotations": labels}
    return orjson.dumps(value).decode()


def contents(fleet: LoadedFleet) -> dict[tuple[str, ...], bytes]:
    """All objects."""
    found = {}
    for resource in fleet.store.resources():
        for record in fleet.store.scan(resource).records:
            found[tuple(record.key)] = record.value
    return found


def loaded(directory: Path, commits: Iterable[Files], *, forms: bool) -> dict[tuple[str, ...], bytes]:
    with pytest.MonkeyPatch.context() as patch:
        if not forms:
            patch.setattr(Forms, "put", lambda *_: None)
        fleet = LoadedFleet(directory / str(forms), keys=directory / "keys")
        try:
            for files in commits:
                fleet.repo.commit(files)
                fleet.load()
            return contents(fleet)
        finally:
            fleet.close()


WORDS = ["a", "b", "cluster", "default", "root", "root:a", "universal", "2026-01-01T00:01:00Z", R + "/a/workspace.yaml"]
texts = st.sampled_from(WORDS) | st.text(max_size=6)
names = st.sampled_from(["a", "b", "c", "cluster", "default", "universal", "x" * 60, "not.one"])
says = st.builds(
    workspace,
    st.none() | st.dictionaries(st.sampled_from(["a", "kcp.io/path", "treeplane.dev/source-commit"]), texts),
    type=st.sampled_from([{"name": n, "path": "root"} for n in ("universal", "organization", "kube-compat", "none")]),
)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(st.lists(names, min_size=1, max_size=4, unique=True), says | st.just("")), max_size=4))
def test_with_forms_there_is_what_there_is_without(found: list[tuple[list[str], str]]) -> None:
    histories = [{f"{R}/{name}/workspace.yaml": said for name in some} for some, said in found]
    commits: list[Files] = [{"treeplane.yaml": TREEPLANE_YAML, f"{R}/keep.yaml": ""}, *histories]
    with TemporaryDirectory() as directory:
        there = [loaded(Path(directory), commits, forms=forms) for forms in (True, False)]
    assert there[0] == there[1]


def test_all_but_the_first_come_from_forms(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Key] = []
    put = Forms.put

    def spy(forms: Forms, signature: Signature, make: Make, key: Key, texts: Iterable[str]) -> Put | None:
        found = put(forms, signature, make, key, texts)
        made.extend([key] if found is not None else ())
        return found

    monkeypatch.setattr(Forms, "put", spy)
    monkeypatch.setattr(Siblings, "stamped", lambda *_: ())
    fleet.commit({f"{R}/n{number}/workspace.yaml": workspace({"team": "seven"}) for number in range(5)})
    assert len([key for key in made if key.resource == "workspaces.tenancy.kcp.io"]) == 4
    assert {key.resource for key in made} == {
        "namespaces",
        "workspaces.tenancy.kcp.io",
        "logicalclusters.core.kcp.io",
    }


KEY = Key("things", "c", "", "n")


def example(nobody: Nobody, further: dict[str, str]) -> Example:
    value = orjson.dumps({"name": nobody.name, **further})
    return Example(KEY._replace(name=nobody.name), value, ((Kind.TEXT, nobody.path),))


def test_what_follows_from_more_than_the_texts_has_no_form() -> None:
    forms = Forms()
    for signature, further in ((("in full",), "nothing"), (("within another text",), "it is {}")):
        for _ in range(3):
            found = forms.put(
                signature, lambda nobody, said=further: example(nobody, {"x": said.format(nobody.path)}), KEY, ["p"]
            )
        assert (found is not None) == (further == "nothing")


def test_a_text_that_needs_another_form_is_put_in_by_nobody() -> None:
    uid = "b39f388e-9277-5f55-a6c2-6979f1a8efac"
    form = form_of(KEY, orjson.dumps([uid]), [(Kind.UID, uid)])
    assert form is not None
    assert form.filled(KEY, [uid.upper()]) is None


said = st.lists(st.text(min_size=1, max_size=6), min_size=2, max_size=2)


@given(said, st.lists(st.integers(0, 1), max_size=5), st.text(max_size=6))
def test_a_form_gives_the_value_that_says_the_texts(other: list[str], places: list[int], name: str) -> None:
    key, drawn = KEY._replace(name=name), ["first one that nobody says", "second one that nobody says"]

    def value(texts: list[str]) -> bytes:
        return orjson.dumps({"name": name, "said": [texts[at] for at in places]})

    form = form_of(key, value(drawn), [(Kind.TEXT, text) for text in drawn])
    assert isinstance(form, Form)
    filled = form.filled(key, other)
    assert filled is not None
    assert fill(filled.template, key, filled.parameters) == value(other)
    assert cut(key, value(other), []) is not None
