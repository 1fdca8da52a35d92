"""What follows from content alone is made once, and nobody sees it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.loadedfleet import LoadedFleet, configmap

from apiserver.model.origins import SHIPPED
from apiserver.registry import strategy
from apiserver.registry.kinds import ServedKind, kubernetes_builtins, workspace_builtins
from apiserver.registry.tree import WorkspaceRecord
from reconciler.loading.prepared import Prepared
from reconciler.loading.render import DeclaredObject, Renderer
from reconciler.loading.sources import generated
from reconciler.loading.workspaceobject import WorkspaceObjects


def kind_of(name: str) -> ServedKind:
    found = workspace_builtins().by_kind("", "v1", name)
    assert found is not None
    return found


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the objects that were prepared."""
    names: list[str] = []
    real = strategy.prepare

    def noted(kind: ServedKind, obj: dict[str, Any], *rest: Any, **options: Any) -> Any:
        names.append(obj["metadata"]["name"])
        return real(kind, obj, *rest, **options)

    monkeypatch.setattr(strategy, "prepare", noted)
    return names


def test_the_same_object_of_two_workspaces_is_prepared_once(fleet: LoadedFleet, prepared: list[str]) -> None:
    text = configmap("prepared-once", said="twice")
    fleet.commit({"workspaces/root/a/once.yaml": text, "workspaces/root/b/once.yaml": text})
    assert fleet.data("root:a", "prepared-once") == fleet.data("root:b", "prepared-once") == {"said": "twice"}
    assert prepared.count("prepared-once") == 1


def test_objects_that_differ_in_texts_of_no_meaning_are_prepared_once(fleet: LoadedFleet, prepared: list[str]) -> None:
    fleet.commit({f"workspaces/root/n{n}/workspace.yaml": "" for n in range(8)})
    fleet.commit({f"workspaces/root/n{n}/alike.yaml": configmap("alike", number=f"{n}") for n in range(8)})
    assert [fleet.data(f"root:n{n}", "alike") for n in range(8)] == [{"number": f"{n}"} for n in range(8)]
    assert prepared.count("alike") == 3, "two are met before it is known, and once it is found out"


def test_objects_that_differ_in_what_their_kind_looks_at_are_prepared_each(
    fleet: LoadedFleet, prepared: list[str]
) -> None:
    def secret(text: str) -> str:
        return f"apiVersion: v1\nkind: Secret\nmetadata: {{name: alike}}\ndata: {{a: '{text}'}}\n"

    fleet.commit({f"workspaces/root/n{n}/workspace.yaml": "" for n in range(6)})
    said = ["aaaa", "bbbb", "cccc", "dddd", "not-base64", "eeee"]
    loaded = fleet.commit({f"workspaces/root/n{n}/alike.yaml": secret(text) for n, text in enumerate(said)})
    assert set(fleet.held(loaded)) == {"root:n4"}
    assert prepared.count("alike") >= len(said)


@given(st.dictionaries(st.sampled_from("abc"), st.text()))
def test_texts_of_which_a_kind_takes_any_are_taken_as_they_are(said: dict[str, str]) -> None:
    kinds = [kind for kind in kubernetes_builtins().all() if strategy.any_text(kind)]
    assert [kind.kind for kind in kinds] == ["ConfigMap"]
    for kind in kinds:
        for field in strategy.any_text(kind):
            obj: dict[str, Any] = {"metadata": {"name": "x", "namespace": "default"}, field: dict(said)}
            assert strategy.prepare(kind, obj) == []
            assert (obj.get(field) or {}) == said


def test_what_is_found_belongs_to_who_asks() -> None:
    kind, kept = kind_of("ConfigMap"), Prepared()
    kept.keep(kind, "default", b"said", {"metadata": {"name": "x"}})
    for _ in range(2):
        found = kept.find(kind, "default", b"said")
        assert found == {"metadata": {"name": "x"}}
        found["metadata"]["name"] = "changed"


def test_another_kind_or_namespace_is_another_object() -> None:
    kind, kept = kind_of("ConfigMap"), Prepared()
    kept.keep(kind, "default", b"said", {})
    assert kept.find(kind, "other", b"said") is None
    assert kept.find(kind_of("Secret"), "default", b"said") is None


def test_what_is_kept_is_bounded() -> None:
    kind, kept = kind_of("ConfigMap"), Prepared()
    kept.keep(kind, "", b"x" * 5000, {})
    assert kept.find(kind, "", b"x" * 5000) is None
    count = 3000  # of four thousand bytes each
    for number in range(count):
        kept.keep(kind, "", b"%4000d" % number, {})
    assert kept.find(kind, "", b"%4000d" % 0) is None
    assert kept.find(kind, "", b"%4000d" % (count - 1)) == {}


def test_what_is_refused_is_refused_each_time(fleet: LoadedFleet) -> None:
    bad = configmap("bad").replace("kind: ConfigMap", "kind: ConfigMap\nnope: 1")
    loaded = fleet.commit({"workspaces/root/a/bad.yaml": bad, "workspaces/root/b/bad.yaml": bad})
    assert set(fleet.held(loaded)) == {"root:a", "root:b"}


def rendered(made: WorkspaceObjects, name: str, cluster: str, **metadata: Any) -> DeclaredObject | None:
    value = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": name, **metadata}}
    record = WorkspaceRecord(f"root:{name}", cluster, "root", type="root:universal")
    return made.render(
        generated([value], SHIPPED)[0], record, Renderer(workspace_builtins(), "root", lambda found, _: found.line)
    )


def test_workspaces_that_say_the_same_differ_in_name_and_cluster(prepared: list[str]) -> None:
    made, labels = WorkspaceObjects(), {"labels": {"team": "told-once"}}
    one, two = rendered(made, "one", "c1", **labels), rendered(made, "two", "c2", **labels)
    alone = rendered(WorkspaceObjects(), "two", "c2", **labels)
    assert one is not None
    assert two is not None
    assert alone is not None
    assert orjson.dumps(two.obj) == orjson.dumps(alone.obj)
    assert (two.key, two.kind) == (alone.key, alone.kind)
    assert (one.obj["metadata"]["name"], one.obj["spec"]["cluster"]) == ("one", "c1")
    assert prepared.count("one") == 1
    assert prepared.count("two") == 1


def test_a_workspace_like_another_still_needs_a_name_that_will_do() -> None:
    made = WorkspaceObjects()
    assert rendered(made, "one", "c1") is not None
    assert rendered(made, "not.one", "c2") is None
    assert rendered(WorkspaceObjects(), "not.one", "c2") is None


def test_other_words_make_another_workspace() -> None:
    made = WorkspaceObjects()
    first = rendered(made, "one", "c1", annotations={"a": "b"})
    second = rendered(made, "two", "c2")
    assert first is not None
    assert second is not None
    assert first.obj["metadata"]["annotations"]["a"] == "b"
    assert "a" not in second.obj["metadata"]["annotations"]
