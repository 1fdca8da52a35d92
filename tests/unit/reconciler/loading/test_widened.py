"""A schema that makes no difference to consumers' objects costs them their bindings' statuses, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import assert_recovers
from support.widgets import binding, export, schema, widget

from reconciler.layout.manifest import Manifest
from reconciler.loading.files import Files
from reconciler.loading.render import Renderer

CONSUMERS = 5
MORE = {"more": {"type": "string"}}
PLACES = [f"workspaces/root/c{n}" for n in range(CONSUMERS)]
PATHS = [f"root:c{n}" for n in range(CONSUMERS)]

Another = Callable[..., LoadedFleet]


def begun(fleet: LoadedFleet) -> LoadedFleet:
    """A provider, and consumers with Widgets and other things."""
    files = {f"{A}/v1.json": schema(), f"{A}/export.json": export()}
    for place in PLACES:
        files |= {f"{place}/workspace.yaml": "", f"{place}/binding.json": binding("root:a")}
        files |= {f"{place}/w{n}.json": widget(name=f"w{n}", size=n) for n in range(3)}
        files |= {f"{place}/other.yaml": configmap("other")}
    fleet.commit(files)
    assert fleet.held() == {}
    return fleet


def widened(number: int = 2, **more: Any) -> dict[str, str]:
    return {
        f"{A}/v{number}.json": schema(f"v{number}", **(more or MORE)),
        f"{A}/export.json": export(f"v{number}"),
    }


@dataclass
class Work:
    """`read`: pieces; `rendered`: manifests that became objects, or did not."""

    read: list[str] = field(default_factory=list)
    rendered: list[str] = field(default_factory=list)

    @property
    def of_consumers(self) -> list[str]:
        return [each for each in (*self.read, *self.rendered) if each.startswith(tuple(PLACES))]


@contextmanager
def counted() -> Iterator[Work]:
    work = Work()
    with pytest.MonkeyPatch.context() as patch:
        read, render = Files.read, Renderer.render

        def reading(self: Files, path: str, blob: str) -> Any:
            work.read.append(path)
            return read(self, path, blob)

        def rendering(self: Renderer, manifest: Manifest) -> Any:
            work.rendered.append(manifest.path)
            return render(self, manifest)

        patch.setattr(Files, "read", reading)
        patch.setattr(Renderer, "render", rendering)
        yield work


def bound(fleet: LoadedFleet, path: str) -> str:
    status = fleet.get(path, "apibindings.apis.kcp.io", "widgets", "")["status"]
    assert status["phase"] == "Bound"
    return str(status["boundResources"][0]["schema"]["name"].partition(".")[0])


def written(fleet: LoadedFleet, after: int) -> set[str]:
    """The resources of all that was written in consumers since a revision."""
    clusters = {fleet.record(path).cluster for path in PATHS}
    changes = fleet.store.changes(after)
    return {c.key.resource for c in changes if c.key.cluster in clusters and not c.key.resource.startswith("~")}


def test_consumers_are_not_read_and_not_judged(fleet: LoadedFleet, another: Another) -> None:
    begun(fleet)
    before = fleet.store.revision()
    with counted() as work:
        fleet.commit(widened())
    assert fleet.held() == {}
    assert [bound(fleet, path) for path in PATHS] == ["v2"] * CONSUMERS
    assert work.of_consumers == []
    assert written(fleet, before) == {"apibindings.apis.kcp.io"}
    # The catalog has the new schema at once.
    fleet.commit({f"{PLACES[0]}/w0.json": widget(name="w0", size=0, more="x")})
    assert fleet.held() == {}
    assert_recovers(fleet, another)


def test_a_first_load_comes_to_the_same(fleet: LoadedFleet, another: Another) -> None:
    begun(fleet)
    fleet.commit(widened())
    first = another(fleet, "first")
    first.load()
    for path in PATHS:
        for name in ("w0", "w1", "w2"):
            here, there = (each.get(path, "widgets.example.io", name) for each in (fleet, first))
            assert here["spec"] == there["spec"]
        assert bound(first, path) == bound(fleet, path)


def test_an_export_that_goes_is_told_of_and_nothing_is_judged(fleet: LoadedFleet, another: Another) -> None:
    begun(fleet)
    with counted() as work:
        fleet.delete({f"{A}/export.json": None})
    assert work.of_consumers == []
    for path in PATHS:
        valid = fleet.condition(fleet.get(path, "apibindings.apis.kcp.io", "widgets", ""), "APIExportValid")
        assert (valid["status"], valid["reason"]) == ("False", "APIExportNotFound")
        assert bound(fleet, path) == "v1"
    assert_recovers(fleet, another)


def test_who_is_bound_to_nothing_else_is_not_written(fleet: LoadedFleet) -> None:
    """A change of a provider that no consumer's binding follows from."""
    begun(fleet)
    before = fleet.store.revision()
    with counted() as work:
        fleet.commit({f"{A}/beside.json": schema("beside")})
    assert work.of_consumers == []
    assert written(fleet, before) == set()


@pytest.mark.parametrize(
    "more",
    [
        {"more": {"type": "string", "default": "x"}},
        {"kind": "number"},
        {"size": {"type": "integer", "default": 1}},
    ],
    ids=["default", "type", "default of a field"],
)
def test_what_makes_a_difference_is_judged(fleet: LoadedFleet, another: Another, more: Any) -> None:
    begun(fleet)
    with counted() as work:
        fleet.commit(widened(**more))
    assert fleet.held() == {}
    assert [bound(fleet, path) for path in PATHS] == ["v2"] * CONSUMERS
    assert work.of_consumers
    first = another(fleet, "first")
    first.load()
    for path in PATHS:
        assert (
            fleet.get(path, "widgets.example.io", "w1")["spec"] == first.get(path, "widgets.example.io", "w1")["spec"]
        )


def test_a_consumer_that_changes_with_its_provider_is_judged(fleet: LoadedFleet) -> None:
    begun(fleet)
    fleet.commit({**widened(), f"{PLACES[0]}/w0.json": widget(name="w0", size=0, more="x")})
    assert fleet.held() == {}
    assert fleet.get("root:c0", "widgets.example.io", "w0")["spec"]["more"] == "x"
    assert bound(fleet, "root:c0") == "v2"


def test_a_consumer_that_is_held_is_judged(fleet: LoadedFleet) -> None:
    """It may be good with what is offered now."""
    begun(fleet)
    fleet.commit({f"{PLACES[0]}/w0.json": widget(name="w0", size=0, more="x")})
    assert list(fleet.held()) == ["root:c0"]
    fleet.commit(widened())
    assert fleet.held() == {}


def test_a_consumer_that_keeps_what_it_had_is_judged(fleet: LoadedFleet) -> None:
    begun(fleet)
    kept = {f"{A}/v2.json": schema("v2", kind="string"), f"{A}/export.json": export("v2", allow="v1->v2")}
    fleet.commit(kept)
    assert bound(fleet, "root:c0") == "v1"
    fleet.commit({f"{A}/v3.json": schema("v3", **MORE), f"{A}/export.json": export("v3", allow="v2->v3")})
    assert fleet.held() == {}
    assert bound(fleet, "root:c0") == "v3"


def test_what_a_binding_waits_for_is_taken(fleet: LoadedFleet) -> None:
    begun(fleet)
    fleet.commit({f"{B}/binding.json": binding("root:a", wanted="late"), f"{B}/other.json": binding("root:a", "other")})
    fleet.commit({f"{A}/late.json": export().replace('"name": "widgets"', '"name": "late"')})
    assert fleet.held() == {}
    found = fleet.get("root:b", "apibindings.apis.kcp.io", "widgets", "")["status"]
    assert found["phase"] == "Binding", "the other one has the names"
    fleet.commit({f"{B}/other.json": None})
    found = fleet.get("root:b", "apibindings.apis.kcp.io", "widgets", "")["status"]
    assert found["phase"] == "Bound"
