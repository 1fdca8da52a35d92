"""Deletions as a client sees them: what to ask a server, step by step, and what to note of its answers.

Run against a real kube-apiserver with its controllers by golden/deletion/record.py, and against Treeplane by
e2e/test_deletion.py, which compares. Whatever differs from run to run (UIDs, times, revisions) is left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
Ask = Callable[[str, str, Any], tuple[int, Any]]
"""Method, path and JSON body (None: none) → HTTP status and decoded answer."""

CONFIGMAPS = "/api/v1/namespaces/{}/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOLD = "example.com/hold"
SECONDS = 90

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_REVISION = re.compile(r"\b\d{3,}\b")


class Scene:
    """A namespace of its own, and a record of what was noted."""

    def __init__(self, ask: Ask, name: str) -> None:
        self.ask, self.space = ask, name
        self.notes: list[Any] = []
        self.done("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    def done(self, method: str, path: str, body: Any = None) -> Object:
        """The answer to what has to work."""
        status, answer = self.ask(method, path, body)
        assert status < 300, f"{method} {path}: {status} {answer}"
        return dict(answer)

    def note(self, method: str, path: str, body: Any = None) -> None:
        status, answer = self.ask(method, path, body)
        self.notes.append([status, told(answer)])

    def until(self, condition: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, f"{self.space}: {what} did not come about"
            time.sleep(0.05)

    def gone(self, path: str) -> bool:
        return self.ask("GET", path, None)[0] == 404

    def dying(self, path: str) -> bool:
        status, answer = self.ask("GET", path, None)
        return status == 200 and bool(answer["metadata"].get("deletionTimestamp"))

    # -- ConfigMaps, of which all these stories are

    def at(self, name: str = "", space: str = "") -> str:
        path = CONFIGMAPS.format(space or self.space)
        return f"{path}/{name}" if name else path

    def make(self, name: str, *owners: Object, space: str = "", **metadata: Any) -> Object:
        metadata = {"name": name, **({"ownerReferences": list(owners)} if owners else {}), **metadata}
        return self.done("POST", self.at(space=space), {"metadata": metadata})

    def own(self, name: str, *owners: Object) -> None:
        """Give an object owners that came later."""
        obj = self.done("GET", self.at(name))
        obj["metadata"]["ownerReferences"] = list(owners)
        self.done("PUT", self.at(name), obj)

    def free(self, path: str) -> None:
        """Takes all finalizers away."""

        def freed() -> bool:
            obj = self.done("GET", path)
            obj["metadata"]["finalizers"] = []
            return self.ask("PUT", path, obj)[0] == 200

        self.until(freed, f"an update of {path}")

    def left(self) -> None:
        """Note what is left in the namespace."""
        found = self.done("GET", self.at())["items"]
        self.notes.append([told(o) for o in found if o["metadata"]["name"] != "kube-root-ca.crt"])


def owner(obj: Object, blocks: bool = False, **other: Any) -> Object:
    metadata = obj["metadata"]
    kind = obj.get("kind", "ConfigMap")
    reference = {"apiVersion": obj.get("apiVersion", "v1"), "kind": kind, "name": metadata["name"]}
    return {**reference, "uid": metadata["uid"], "blockOwnerDeletion": blocks, **other}


def told(answer: Any) -> Any:
    """What of an answer is the same in every run."""
    if not isinstance(answer, dict):
        return answer
    if answer.get("kind") == "Status":
        details = {k: v for k, v in (answer.get("details") or {}).items() if k != "uid"}
        found = {"status": answer["status"], "message": _steady(answer.get("message", "")), "details": details}
        return {**found, "reason": answer.get("reason", "")}
    if "items" in answer:
        return sorted(o["metadata"]["name"] for o in answer["items"])
    metadata = answer["metadata"]
    found = {
        "name": metadata["name"],
        "deleting": "deletionTimestamp" in metadata,
        "grace": metadata.get("deletionGracePeriodSeconds"),
        "generation": metadata.get("generation"),
        "finalizers": sorted(metadata.get("finalizers", [])),
        "owners": [[r["name"], bool(r.get("blockOwnerDeletion"))] for r in metadata.get("ownerReferences", [])],
    }
    conditions = (answer.get("status") or {}).get("conditions")
    if conditions and answer["kind"] != "Job":
        found["conditions"] = sorted([c["type"], c["status"], c["reason"], c["message"]] for c in conditions)
    if answer.get("kind") == "Namespace":
        found["phase"], found["space finalizers"] = answer["status"]["phase"], answer["spec"].get("finalizers", [])
    return found


def _steady(text: str) -> str:
    return _REVISION.sub("<number>", _UID.sub("<uid>", text))


# -- the stories


def background(s: Scene) -> None:
    a, b = s.make("a"), s.make("b")
    child = s.make("child", owner(a))
    s.make("grandchild", owner(child, blocks=True))
    s.make("shared", owner(a), owner(b, blocks=True))
    s.note("DELETE", s.at("a"), {"propagationPolicy": "Background"})
    s.until(lambda: s.gone(s.at("grandchild")), "the end of the grandchild")
    s.until(lambda: len(s.done("GET", s.at("shared"))["metadata"]["ownerReferences"]) == 1, "one owner of shared")
    s.left()


def foreground(s: Scene) -> None:
    a = s.make("a")
    child = s.make("child", owner(a, blocks=True))
    s.make("grandchild", owner(child, blocks=True), finalizers=[HOLD])
    s.make("free", owner(a))
    s.note("DELETE", s.at("a"), {"propagationPolicy": "Foreground"})
    s.until(lambda: s.dying(s.at("grandchild")), "the deletion of the grandchild")
    s.until(lambda: s.gone(s.at("free")), "the end of the one that does not block")
    s.left()
    s.free(s.at("grandchild"))
    s.until(lambda: s.gone(s.at("a")), "the end of the owner")
    s.left()


def foreground_does_not_wait_for_all(s: Scene) -> None:
    a = s.make("a")
    s.make("child", owner(a), finalizers=[HOLD])
    s.note("DELETE", s.at("a"), {"propagationPolicy": "Foreground"})
    s.until(lambda: s.gone(s.at("a")), "the end of the owner")
    s.until(lambda: s.dying(s.at("child")), "the deletion of the child")
    s.left()
    s.free(s.at("child"))


def orphan(s: Scene) -> None:
    a, b = s.make("a"), s.make("b")
    s.make("child", owner(a, blocks=True), owner(b))
    s.make("alone", owner(a))
    s.note("DELETE", s.at("a"), {"propagationPolicy": "Orphan"})
    s.until(lambda: s.gone(s.at("a")), "the end of the owner")
    s.left()


def circles(s: Scene) -> None:
    for policy in ("Foreground", "Background"):
        made = {name: s.make(name) for name in "abc"}
        for name, of in (("a", "c"), ("b", "a"), ("c", "b")):
            s.own(name, owner(made[of], blocks=True))
        time.sleep(1)  # kube-controller-manager has to have seen the circle
        s.note("DELETE", s.at("a"), {"propagationPolicy": policy})
        s.until(lambda: all(s.gone(s.at(n)) for n in "abc"), f"the end of the circle, {policy}")
        s.left()


def owners_that_are_not_there(s: Scene) -> None:
    wide = s.done("POST", ROLES, {"metadata": {"name": s.space}})
    here, there = s.make("here"), s.make("there", space="default")
    s.make("of-wide", owner(wide))
    s.make("other-uid", owner(here, uid="11111111-2222-3333-4444-555555555555"))
    s.make("other-namespace", owner(there))
    s.make("unknown-kind", owner(here, apiVersion="nowhere.example.com/v1", kind="Nothing"))
    for name in ("other-uid", "other-namespace"):
        s.until(lambda name=name: s.gone(s.at(name)), f"the end of {name}")  # type: ignore[misc]
    s.left()
    s.note("DELETE", f"{ROLES}/{s.space}", {})
    s.until(lambda: s.gone(s.at("of-wide")), "the end of what the ClusterRole owned")
    s.done("DELETE", s.at("there", "default"))


def asked_twice(s: Scene) -> None:
    def start(policy: str) -> None:
        s.make("child", owner(s.make("a"), blocks=True), finalizers=[HOLD])
        s.note("DELETE", s.at("a"), {"propagationPolicy": policy})

    start("Foreground")
    s.note("DELETE", s.at("a"), {})
    s.note("DELETE", s.at("a"), {"propagationPolicy": "Background"})
    s.until(lambda: s.dying(s.at("child")), "the deletion of the child")
    s.free(s.at("child"))
    s.until(lambda: s.gone(s.at("child")), "the end of the child")
    s.make("a", finalizers=[HOLD, "foregroundDeletion"])
    s.note("DELETE", s.at("a"), {"orphanDependents": False})
    s.note("DELETE", s.at("a"), {})
    s.free(s.at("a"))


def what_cannot_be_meant(s: Scene) -> None:
    made = s.make("a")
    for options in (
        {"propagationPolicy": "Orphan", "orphanDependents": True},
        {"propagationPolicy": "Sideways"},
        {"dryRun": ["Some"]},
        {"preconditions": {"uid": "11111111-2222-3333-4444-555555555555"}},
        {"preconditions": {"resourceVersion": "1000"}},
    ):
        s.note("DELETE", s.at("a"), options)
    s.note("DELETE", f"/api/v1/namespaces/{s.space}", {"preconditions": {"uid": made["metadata"]["uid"]}})
    s.note("DELETE", s.at("nobody"), {})
    s.note("DELETE", "/api/v1/namespaces/default", {})
    s.note("DELETE", s.at("a"), {"dryRun": ["All"], "propagationPolicy": "Foreground"})
    s.note("DELETE", s.at("a"), {"dryRun": ["All"]})
    s.left()


def policies_of_kinds(s: Scene) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    batch, base = f"/apis/batch/v1/namespaces/{s.space}/jobs", f"/api/v1/namespaces/{s.space}"
    job = {**template, "spec": {**template["spec"], "restartPolicy": "Never"}}
    s.done("POST", batch, {"metadata": {"name": "j", "finalizers": [HOLD]}, "spec": {"suspend": True, "template": job}})
    s.note("DELETE", f"{batch}/j", {})
    s.free(f"{batch}/j")
    spec = {"replicas": 0, "selector": {"a": "b"}, "template": template}
    controllers = f"{base}/replicationcontrollers"
    s.done("POST", controllers, {"metadata": {"name": "r", "finalizers": [HOLD]}, "spec": spec})
    s.note("DELETE", f"{controllers}/r", {})
    s.free(f"{controllers}/r")
    s.done("POST", f"{base}/serviceaccounts", {"metadata": {"name": "s"}})
    s.note("DELETE", f"{base}/serviceaccounts/s", {})
    s.done("POST", f"{base}/secrets", {"metadata": {"name": "s"}})
    s.note("DELETE", f"{base}/secrets/s", {})


def collections(s: Scene) -> None:
    for name, label in (("a", "1"), ("b", "2"), ("c", "1")):
        s.make(name, labels={"l": label}, finalizers=[HOLD] if name == "c" else [])
    s.note("DELETE", f"{s.at()}?labelSelector=l%3D1", {"propagationPolicy": "Foreground"})
    s.until(lambda: s.gone(s.at("a")), "the end of the first")
    s.until(lambda: s.done("GET", s.at("c"))["metadata"]["finalizers"] == [HOLD], "the finalizer of propagation gone")
    s.left()
    s.free(s.at("c"))


def namespaces(s: Scene) -> None:
    path = f"/api/v1/namespaces/{s.space}"
    s.make("a")
    s.make("b", finalizers=[HOLD])
    s.make("c", finalizers=[HOLD, "example.com/other"])
    s.note("DELETE", path, {})
    s.until(lambda: len(_conditions(s, path)) == 5, "the conditions")
    s.until(lambda: s.gone(s.at("a")), "the end of what nobody holds")
    s.note("GET", path)
    s.note("DELETE", path, {})
    s.note("POST", s.at(), {"metadata": {"name": "late"}})
    s.free(s.at("b"))
    s.free(s.at("c"))
    s.until(lambda: s.gone(path), "the end of the namespace")


def namespaces_with_finalizers(s: Scene) -> None:
    path = f"/api/v1/namespaces/{s.space}"
    obj = s.done("GET", path)
    obj["metadata"]["finalizers"] = [HOLD]
    obj["spec"]["finalizers"] = ["kubernetes", "example.com/kept"]
    s.done("PUT", f"{path}/finalize", obj)
    s.note("GET", path)
    s.note("DELETE", path, {"propagationPolicy": "Foreground"})
    s.until(lambda: s.done("GET", path)["spec"]["finalizers"] == ["example.com/kept"], "its content gone")
    s.until(lambda: len(_conditions(s, path)) == 5, "the conditions")
    s.note("GET", path)
    obj = s.done("GET", path)
    obj["spec"]["finalizers"] = []
    s.done("PUT", f"{path}/finalize", obj)
    s.free(path)
    s.until(lambda: s.gone(path), "the end of the namespace")


def definitions(s: Scene) -> None:
    group = f"{s.space}.example.com"
    path, widgets = f"{DEFINITIONS}/widgets.{group}", f"/apis/{group}/v1/namespaces/{s.space}/widgets"
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    spec = {"group": group, "names": names, "scope": "Namespaced", "versions": [version]}
    s.done("POST", DEFINITIONS, {"metadata": {"name": f"widgets.{group}"}, "spec": spec})
    s.until(lambda: s.ask("GET", widgets, None)[0] == 200, "the kind")
    widget = {"kind": "Widget", "apiVersion": f"{group}/v1", "metadata": {"name": "w"}}

    def make() -> bool:
        status, _ = s.ask("POST", widgets, {**widget, "metadata": {"name": "held", "finalizers": [HOLD]}})
        return status == 201

    s.until(make, "an instance")
    s.done("POST", widgets, widget)
    s.note("DELETE", path, {})
    s.until(lambda: s.gone(f"{widgets}/w"), "the end of the free instance")
    s.until(lambda: s.dying(f"{widgets}/held"), "the deletion of the other")
    s.note("GET", f"{widgets}/held")
    s.note("POST", widgets, {**widget, "metadata": {"name": "late"}})
    told = {c["type"]: [c["status"], c["reason"], c["message"]] for c in _conditions(s, path)}
    s.notes.append(told["Terminating"])
    s.free(f"{widgets}/held")
    s.until(lambda: s.gone(path), "the end of the definition")


def _conditions(s: Scene, path: str) -> list[Object]:
    return list(s.done("GET", path).get("status", {}).get("conditions") or [])


STORIES: dict[str, Callable[[Scene], None]] = {
    story.__name__: story
    for story in (
        background,
        foreground,
        foreground_does_not_wait_for_all,
        orphan,
        circles,
        owners_that_are_not_there,
        asked_twice,
        what_cannot_be_meant,
        policies_of_kinds,
        collections,
        namespaces,
        namespaces_with_finalizers,
        definitions,
    )
}


def play(ask: Ask, story: str, prefix: str = "deletion") -> list[Any]:
    """What was noted. The server is left as it was, but for the story's namespace where that stays."""
    scene = Scene(ask, f"{prefix}-{story.replace('_', '-')}")
    STORIES[story](scene)
    ask("DELETE", f"/api/v1/namespaces/{scene.space}", None)
    return scene.notes
