"""A commit that takes away much, or what others hang on, is held until somebody says that it is meant."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support import shipped
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers, assert_same
from support.widgets import binding, crd, export, schema, widget

from apiserver.model.identity import sync_target_key
from reconciler.loading.guard import Guard
from reconciler.plan.deletions import PROTECTED, Line, digest

MANY = {f"{A}/many/{n:02}.yaml": configmap(f"m{n:02}") for n in range(12)}
FEW = {f"{A}/few/{n:02}.yaml": configmap(f"f{n:02}") for n in range(40)}


def made(kind: str, name: str, protected: str = "", spec: object = None, api: str = "tenancy.kcp.io/v1alpha1") -> str:
    metadata: dict[str, Any] = {"name": name}
    if protected:
        metadata["annotations"] = {PROTECTED: protected}
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": metadata} | ({"spec": spec} if spec else {}))


def marked(name: str, protected: str) -> str:
    """A ConfigMap."""
    return configmap(name).replace("{name:", f"{{annotations: {{{PROTECTED}: {protected!r}}}, name:")


SPACE = made("Namespace", "shop", api="v1")


def error(fleet: LoadedFleet, path: str = "root:a") -> str:
    [found] = fleet.held()[path]
    return found


def asked(fleet: LoadedFleet, path: str = "root:a") -> str:
    """The hash that a workspace's error asks for."""
    [found] = re.findall(r"Allow-Delete: ([0-9a-f]{40})'$", error(fleet, path))
    return str(found)


def allow(fleet: LoadedFleet, trailer: str, files: dict[str, str | None] | None = None) -> None:
    fleet.repo.commit(files or {}, f"Allow it\n\n{trailer}\n")
    fleet.load()


# -- many


def test_many_are_held_until_they_are_allowed(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    fleet.commit({**dict.fromkeys(MANY), f"{A}/app.yaml": configmap(a="c"), f"{B}/app.yaml": configmap(a="c")})
    assert error(fleet).startswith(
        f"{A}: 12 objects would be deleted, and spec.safety.maxDeletedShare allows 30 % of its 13 objects in one commit"
    )
    assert asked(fleet) == digest(Line("root:a", "configmaps", "default", f"m{n:02}") for n in range(12))
    # It is held as a whole, and nobody else is.
    assert fleet.data("root:a", "m03") == {"a": "b"}
    assert fleet.data("root:a") == {"a": "b"}
    assert fleet.data("root:b") == {"a": "c"}
    allow(fleet, f"Allow-Delete: {asked(fleet)}")
    assert fleet.held() == {}
    assert fleet.find("root:a", "configmaps", "m03") is None
    assert fleet.data("root:a") == {"a": "c"}


def test_few_go_just_so(fleet: LoadedFleet) -> None:
    fleet.commit({**MANY, **FEW})
    fleet.commit(dict.fromkeys(MANY))
    assert fleet.held() == {}
    assert fleet.find("root:a", "configmaps", "m03") is None


def test_the_number_is_bounded_whatever_the_share(fleet: LoadedFleet) -> None:
    everything = {f"{A}/x{n:03}.yaml": configmap(f"x{n:03}") for n in range(400)}
    fleet.commit(everything)
    fleet.commit(dict.fromkeys(sorted(everything)[:101]))
    assert "maxDeletedObjects allows 100" in error(fleet)
    fleet.commit({sorted(everything)[0]: everything[sorted(everything)[0]]})
    assert fleet.held() == {}
    assert len([r for r in fleet.everything() if r.name.startswith("x")]) == 300


def test_limits_are_those_of_the_served_commit(fleet: LoadedFleet) -> None:
    said = fleet.first_files()["treeplane.yaml"]
    loose = said + "spec: {safety: {maxDeletedShare: 100}}\n"
    fleet.commit(MANY)
    fleet.commit({**dict.fromkeys(MANY), "treeplane.yaml": loose})
    assert set(fleet.held()) == {"root:a"}
    # By the next commit they are served.
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    assert fleet.held() == {}
    fleet.commit(MANY)
    fleet.commit(
        {**dict.fromkeys(sorted(MANY)[:5]), "treeplane.yaml": said + "spec: {safety: {maxDeletedObjects: 3}}\n"}
    )
    assert fleet.held() == {}
    fleet.commit(dict.fromkeys(sorted(MANY)[5:9]))
    assert "maxDeletedObjects allows 3" in error(fleet)


def test_what_moves_to_another_file_or_workspace_is_told_apart(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    moved = {path.replace("/many/", "/other/"): text for path, text in MANY.items()}
    fleet.commit({**dict.fromkeys(MANY), **moved})
    assert fleet.held() == {}
    fleet.commit({**dict.fromkeys(moved), f"{A}/all.yaml": "---\n".join(MANY.values())})
    assert fleet.held() == {}
    fleet.commit({f"{A}/all.yaml": None, f"{B}/all.yaml": "---\n".join(MANY.values())})
    assert set(fleet.held()) == {"root:a"}


# -- what is protected


def test_a_namespace_with_objects(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/ns.yaml": SPACE})
    fleet.commit({f"{A}/ns.yaml": None})
    assert fleet.held() == {}
    fleet.commit({f"{A}/ns.yaml": SPACE, f"{A}/x.yaml": configmap("x", "shop")})
    fleet.commit({f"{A}/ns.yaml": None, f"{A}/x.yaml": None})
    assert "namespaces /shop is protected: it has objects" in error(fleet)
    fleet.commit({f"{A}/ns.yaml": SPACE})
    assert fleet.held() == {}
    fleet.commit({f"{A}/ns.yaml": None})
    assert fleet.held() == {}


def test_what_comes_with_a_namespace_is_no_object_of_it(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/ns.yaml": SPACE})
    for resource, name, kind in (
        ("configmaps", "kube-root-ca.crt", "ConfigMap"),
        ("serviceaccounts", "default", "ServiceAccount"),
        ("events", "e", "Event"),
    ):
        key = fleet.key("root:a", resource, name, "shop")
        fleet.put(key, {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
    fleet.commit({f"{A}/ns.yaml": None})
    assert fleet.held() == {}


def test_what_was_made_through_the_api_is(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/ns.yaml": SPACE})
    key = fleet.key("root:a", "configmaps", "c", "shop")
    fleet.put(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}})
    fleet.commit({f"{A}/ns.yaml": None})
    assert "it has objects" in error(fleet)


def test_a_definition_with_objects(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd()})
    fleet.commit({f"{A}/crd.json": None})
    assert fleet.held() == {}
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    fleet.commit({f"{A}/crd.json": None, f"{A}/w.json": None})
    assert "widgets.example.io is protected: there are objects of its kind" in error(fleet)


def test_an_export_and_a_binding_with_objects(fleet: LoadedFleet) -> None:
    provider = {f"{A}/schema.json": schema(), f"{A}/export.json": export()}
    fleet.commit({**provider, f"{B}/binding.json": binding("root:a")})
    fleet.commit({f"{B}/binding.json": None, f"{A}/export.json": None})
    assert fleet.held() == {}
    fleet.commit({**provider, f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    fleet.commit({f"{A}/export.json": None})
    assert "apiexports.apis.kcp.io /widgets is protected: consumers have objects of its kinds" in error(fleet)
    fleet.commit({f"{A}/export.json": export(), f"{B}/binding.json": None, f"{B}/w.json": None})
    assert "apibindings.apis.kcp.io /widgets is protected: there are objects of its kinds" in error(fleet, "root:b")


def test_a_target_with_copies(fleet: LoadedFleet) -> None:
    target = made("SyncTarget", "east", api="workload.kcp.io/v1alpha1")
    bind = shipped.binding(shipped.KUBERNETES, shipped.SCHEDULING)
    fleet.commit({f"{A}/apis.yaml": shipped.binding(shipped.WORKLOAD), f"{A}/east.yaml": target})
    fleet.commit({f"{A}/east.yaml": None})
    assert fleet.held() == {}
    where = {"locationResource": {"group": "workload.kcp.io", "version": "v1alpha1", "resource": "synctargets"}}
    placement = made("Placement", "p", spec=where, api="scheduling.kcp.io/v1alpha1")
    fleet.commit({f"{A}/east.yaml": target, f"{B}/p.yaml": placement, f"{B}/bind.yaml": bind})
    assert fleet.held() == {}

    def decide(obj: dict[str, Any]) -> None:
        key = sync_target_key(fleet.record("root:a").cluster, "east")
        obj["metadata"].setdefault("annotations", {})["internal.workload.kcp.io/synctarget"] = key

    fleet.update(fleet.key("root:b", "placements.scheduling.kcp.io", "p", ""), decide)
    fleet.commit({f"{A}/east.yaml": None})
    assert "synctargets.workload.kcp.io /east is protected: it holds copies" in error(fleet)


def test_a_claim_on_storage(fleet: LoadedFleet) -> None:
    compat = made("Workspace", "c", spec={"type": {"name": "kube-compat", "path": "root"}})
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = made("PersistentVolumeClaim", "data", spec=spec, api="v1")
    fleet.commit({"workspaces/root/c/workspace.yaml": compat, "workspaces/root/c/claim.yaml": claim})
    assert fleet.held() == {}
    fleet.commit({"workspaces/root/c/claim.yaml": None})
    said = error(fleet, "root:c")
    assert "persistentvolumeclaims default/data is protected: it is storage, and so are its copies" in said


def test_what_says_so_of_itself(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/x.yaml": marked("x", "true")})
    # What is served counts: it does not free itself as it goes.
    fleet.commit({f"{A}/x.yaml": None})
    assert "configmaps default/x is protected: its annotation treeplane.dev/protected says so" in error(fleet)
    fleet.commit({f"{A}/x.yaml": configmap("x")})
    fleet.commit({f"{A}/x.yaml": None})
    assert fleet.held() == {}


# -- what is free


def test_an_object_that_is_free(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/ns.yaml": made("Namespace", "shop", "false", api="v1"), f"{A}/x.yaml": configmap("x", "shop")})
    fleet.commit({f"{A}/ns.yaml": None, f"{A}/x.yaml": None})
    assert fleet.held() == {}


def test_a_workspace_that_is_free_with_all_in_it(fleet: LoadedFleet) -> None:
    free = made("Workspace", "a", "false")
    fleet.commit({**MANY, f"{A}/kept.yaml": marked("kept", "true"), f"{A}/workspace.yaml": free})
    fleet.commit(dict.fromkeys(MANY))
    assert fleet.held() == {}
    fleet.commit({f"{A}/kept.yaml": None})
    assert "configmaps default/kept is protected" in error(fleet)
    fleet.commit({f"{A}/kept.yaml": configmap("kept")})
    fleet.commit({A: None})
    assert fleet.paths() == {"root", "root:b"}


def test_a_workspace_does_not_free_itself_as_it_goes(fleet: LoadedFleet) -> None:
    free = made("Workspace", "a", "false")
    fleet.commit(MANY)
    fleet.commit({**dict.fromkeys(MANY), f"{A}/workspace.yaml": free})
    assert set(fleet.held()) == {"root:a"}


def test_a_type_frees_its_workspaces(fleet: LoadedFleet) -> None:
    kind = made("WorkspaceType", "preview", "false")
    preview = made("Workspace", "p", spec={"type": {"name": "preview", "path": "root"}})
    p = "workspaces/root/p"
    fleet.commit({"workspaces/root/preview.yaml": kind})
    fleet.commit({f"{p}/workspace.yaml": preview, f"{p}/ns.yaml": SPACE, f"{p}/x.yaml": configmap("x", "shop")})
    assert fleet.held() == {}
    fleet.commit({f"{p}/below/workspace.yaml": "", f"{p}/below/x.yaml": configmap("x")})
    fleet.commit({p: None})
    assert fleet.paths() == {"root", "root:a", "root:b"}


# -- whose word it is


@pytest.mark.parametrize(
    "trailer",
    ["Allow-Delete: {}", "allow-delete: {}", "Allow-Delete: 0123 {}", "Allow-Delete: 0123\nAllow-Delete: {}"],
)
def test_trailers_are_read_as_git_reads_them(fleet: LoadedFleet, trailer: str) -> None:
    fleet.commit(MANY)
    fleet.commit(dict.fromkeys(MANY))
    allow(fleet, trailer.format(asked(fleet)))
    assert fleet.held() == {}


@pytest.mark.parametrize(
    "message",
    ["Allow-Delete: {}\n\nIn the subject, which is no trailer", "X\n\nAllow-Delete: {}\n\nNot in the last paragraph"],
)
def test_what_git_does_not_read_as_a_trailer_is_none(fleet: LoadedFleet, message: str) -> None:
    fleet.commit(MANY)
    fleet.commit(dict.fromkeys(MANY))
    fleet.repo.commit({}, message.format(asked(fleet)))
    fleet.load()
    assert set(fleet.held()) == {"root:a"}


def test_the_commit_that_deletes_may_say_so_itself(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    word = digest(Line("root:a", "configmaps", "default", f"m{n:02}") for n in range(12))
    allow(fleet, f"Allow-Delete: {word}", dict.fromkeys(MANY))
    assert fleet.held() == {}


def test_a_merged_commit_may_say_so(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    base = fleet.repo.head
    fleet.commit(dict.fromkeys(MANY))
    mine, word = fleet.repo.head, asked(fleet)
    other = fleet.repo.commit({}, f"Allow it\n\nAllow-Delete: {word}\n", parent=base)
    fleet.repo.reset(mine)
    fleet.repo.merge({}, other)
    fleet.load()
    assert fleet.held() == {}


def test_a_word_that_was_served_before_is_spent(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    fleet.delete(dict.fromkeys(MANY))
    fleet.commit(MANY)
    fleet.commit(dict.fromkeys(MANY))
    assert set(fleet.held()) == {"root:a"}
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    assert set(fleet.held()) == {"root:a"}
    assert fleet.data("root:a", "m03") == {"a": "b"}


def test_another_loss_needs_another_word(fleet: LoadedFleet) -> None:
    fleet.commit({**MANY, f"{A}/one.yaml": configmap("one")})
    fleet.commit(dict.fromkeys(MANY))
    word = asked(fleet)
    allow(fleet, f"Allow-Delete: {word}", {f"{A}/one.yaml": None})
    assert asked(fleet) != word
    # What is put back never went.
    fleet.commit({f"{A}/one.yaml": configmap("one")})
    assert fleet.held() == {}
    assert fleet.find("root:a", "configmaps", "m03") is None
    assert fleet.data("root:a", "one") == {"a": "b"}


def test_the_word_counts_once_what_else_was_wrong_is_mended(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    fleet.commit(dict.fromkeys(MANY))
    word = asked(fleet)
    allow(fleet, f"Allow-Delete: {word}", {f"{A}/bad.yaml": "kind: ["})
    assert f"{A}/bad.yaml" in error(fleet)
    fleet.commit({f"{A}/bad.yaml": None})
    assert fleet.held() == {}
    assert fleet.find("root:a", "configmaps", "m03") is None


def test_and_where_the_served_commit_was_merged_into_the_one_that_said_it(fleet: LoadedFleet, another: Another) -> None:
    """The first parent of what is held is not what was served before it."""
    fleet.commit(MANY)
    served = fleet.repo.head
    word = digest(Line("root:a", "configmaps", "default", f"m{n:02}") for n in range(12))
    fleet.repo.commit({f"{B}/x.yaml": configmap("x")}, f"X\n\nAllow-Delete: {word}\n", parent=fleet.repo.commits[0])
    fleet.repo.merge({f"{A}/bad.yaml": "kind: ["}, served)
    fleet.load()
    assert f"{A}/bad.yaml" in error(fleet)
    new = assert_recovers(fleet, another)
    fleet.commit({f"{A}/bad.yaml": None})
    new.load()
    for each in (fleet, new):
        assert each.held() == {}
        assert each.find("root:a", "configmaps", "m03") is None


def test_a_restart_does_not_forget(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit(MANY)
    fleet.commit(dict.fromkeys(MANY))
    before = fleet.held()
    fleet.loader = fleet.new_loader()
    fleet.load()
    fleet.recheck(fleet.paths())
    assert fleet.held() == before
    new = assert_recovers(fleet, another)
    assert new.held() == before
    fleet.allow()
    new.load()
    assert_same(new, fleet)
    assert new.held() == {}


def test_a_recovery_does_not_do_what_only_runtime_objects_stood_against(fleet: LoadedFleet, another: Another) -> None:
    """They are lost with the store; the namespace goes when somebody says so, or with the next commit."""
    fleet.commit({f"{A}/ns.yaml": SPACE})
    key = fleet.key("root:a", "configmaps", "c", "shop")
    fleet.put(key, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}})
    fleet.commit({f"{A}/ns.yaml": None})
    fleet.publish()
    new = another(fleet)
    new.load(new.recorded())
    assert new.held() == fleet.held()
    assert new.find("root:a", "namespaces", "shop", "") is not None
    new.recheck(new.paths())
    assert new.held() == fleet.held()
    new.commit({f"{A}/app.yaml": configmap(a="c")})
    assert new.held() == {}


def test_a_recovery_follows_what_was_allowed_meanwhile(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit(MANY)
    fleet.publish()
    fleet.delete(dict.fromkeys(MANY))
    new = another(fleet)
    new.load(new.recorded())
    assert_same(new, fleet)


def test_what_is_put_back_with_other_content_never_went(fleet: LoadedFleet) -> None:
    fleet.commit(MANY)
    uid = fleet.get("root:a", "configmaps", "m03")["metadata"]["uid"]
    fleet.commit(dict.fromkeys(MANY))
    fleet.commit({path: text.replace("'b'", "'c'") for path, text in MANY.items()})
    assert fleet.held() == {}
    assert fleet.data("root:a", "m03") == {"a": "c"}
    assert fleet.get("root:a", "configmaps", "m03")["metadata"]["uid"] == uid


def test_an_object_that_changes_its_kind_or_name_goes(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/x.yaml": marked("x", "true")})
    fleet.commit({f"{A}/x.yaml": marked("other", "true")})
    assert "configmaps default/x is protected" in error(fleet)


def test_of_many_workspaces_that_go_their_parent_is_asked_once(
    empty: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = (
        f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata: {{annotations: {{{PROTECTED}: 'false'}}}}\n"
    )
    paths = [f"workspaces/root/m{number}/workspace.yaml" for number in range(20)]
    empty.begin({"workspaces/root/workspace.yaml": free} | dict.fromkeys(paths, ""))
    asked: list[str] = []
    said_of, declared = Guard._said_of, Guard.manifests
    monkeypatch.setattr(Guard, "_said_of", lambda guard, record: asked.append(record.path) or said_of(guard, record))
    monkeypatch.setattr(
        Guard, "manifests", lambda guard, record: asked.append(f"{record.path} all") or declared(guard, record)
    )
    empty.commit(dict.fromkeys(paths))
    assert "root:m3" not in empty.paths()
    assert asked.count("root") == 1
    assert not any(each.endswith(" all") for each in asked)
