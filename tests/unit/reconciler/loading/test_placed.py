"""What git said earlier of where namespaces run: what a commit placed, and the served one does not, was withdrawn."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
import yaml
from support import settling
from support.loadedfleet import A, LoadedFleet
from support.shipped import SCHEDULING, binding
from support.syncedfleet import FREE, config, namespace, placement

from apiserver.model.commits import parse
from apiserver.registry import tree
from reconciler.loading import pins
from reconciler.loading.placed import Placed
from reconciler.repository import keep

FILES = {
    f"{A}/workspace.yaml": FREE,
    f"{A}/apis.yaml": binding(SCHEDULING),
    f"{A}/placement.yaml": placement(),
    f"{A}/namespace.yaml": namespace(app="web"),
    f"{A}/web.yaml": config("web"),
}


@pytest.fixture
def placing(empty: LoadedFleet) -> LoadedFleet:
    empty.begin(FILES)
    assert empty.held() == {}
    return empty


def withdrawn(fleet: LoadedFleet, commit: str, *by: str, name: str = "web", path: str = "root:a") -> bool:
    return Placed(fleet.store, fleet.mirror.repositories).withdrawn(path, parse(commit), name, by)


@pytest.mark.parametrize(
    "edit",
    [
        {"placement.yaml": None},
        {"placement.yaml": placement(app="other")},
        {"placement.yaml": placement("renamed", app="other")},
        {"namespace.yaml": namespace(app="other")},
        {"namespace.yaml": None, "web.yaml": None},
    ],
)
@pytest.mark.parametrize("by", [(), ("prod",), ("prod", "never")])
def test_what_a_commit_takes_away_is_withdrawn(edit: dict[str, Any], by: tuple[str, ...], placing: LoadedFleet) -> None:
    first = placing.repo.head
    assert not withdrawn(placing, first, *by)
    placing.commit({f"{A}/more.yaml": config("more", "default")})
    placing.commit({f"{A}/{name}": text for name, text in edit.items()})
    assert withdrawn(placing, first, *by)
    assert not withdrawn(placing, placing.repo.head, *by), "it never placed it"


def pinned(commit: str, until: str = "") -> str:
    said = json.loads(json.dumps(yaml.safe_load(FREE)))
    serve = {"commit": commit} | ({"until": until} if until else {})
    return json.dumps({**said, "spec": {**(said.get("spec") or {}), "serve": serve}})


def test_what_a_pin_takes_away_is_withdrawn_and_so_is_what_its_end_does(
    placing: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_it = placing.repo.head
    placing.commit({f"{A}/placement.yaml": None})
    without = placing.repo.head
    placing.commit({f"{A}/placement.yaml": placement()})
    placed = placing.repo.head
    placing.commit({f"{A}/workspace.yaml": pinned(without)})
    assert withdrawn(placing, placed, "prod"), "it stands in the head, and is not served"
    placing.commit({f"{A}/workspace.yaml": pinned(with_it, "2100-01-01T00:00:00Z")})
    placing.commit({f"{A}/placement.yaml": None})
    head = placing.repo.head
    assert not withdrawn(placing, head, "prod")
    assert not withdrawn(placing, with_it, "prod")
    monkeypatch.setattr(pins, "now", lambda: 5e9)
    pins.serve(placing.store, placing.loader.look_again)
    assert placing.held() == {}
    assert withdrawn(placing, head, "prod")


def test_a_workspace_that_leaves(placing: LoadedFleet) -> None:
    """What waits in it for finalizers keeps no copy of the rest."""
    first = placing.repo.head
    settling.keep(placing, "root:a", "app", "configmaps")
    placing.commit(dict.fromkeys([*FILES, f"{A}/app.yaml"]))
    assert placing.record("root:a").leaves
    assert withdrawn(placing, first)
    assert not withdrawn(placing, placing.repo.head)


def test_a_workspace_that_is_gone(placing: LoadedFleet) -> None:
    first = placing.repo.head
    gone = [*FILES, f"{A}/app.yaml"]
    placing.commit(dict.fromkeys(gone))
    assert "root:a" not in placing.paths()
    assert withdrawn(placing, first, "prod")
    assert not withdrawn(placing, first, "prod", path="root:never")


def test_what_came_and_went_in_between(placing: LoadedFleet) -> None:
    placing.commit({f"{A}/placement.yaml": None})
    first = placing.repo.head
    placing.commit({f"{A}/placement.yaml": placement()})
    placing.commit({f"{A}/placement.yaml": None})
    assert withdrawn(placing, first, "prod")


def test_another_placement_is_no_reason_and_no_excuse(placing: LoadedFleet) -> None:
    """It was prod that placed it there; spare selects it, too, and may have it elsewhere."""
    placing.commit({f"{A}/spare.yaml": placement("spare", "east")})
    first = placing.repo.head
    placing.commit({f"{A}/placement.yaml": None})
    assert withdrawn(placing, first, "prod")
    assert not withdrawn(placing, first, "prod", "spare")
    assert not withdrawn(placing, first), "who placed it there is not known"
    assert not withdrawn(placing, first, "never")


def test_a_commit_that_was_never_served_tells_nothing(placing: LoadedFleet) -> None:
    placing.commit({f"{A}/placement.yaml": None})
    for commit in ("", "1" * 40, f"charts.{placing.repo.commits[0]}"):
        assert not withdrawn(placing, commit, "prod")
    for path in ("", "../a", "root:" + "a:" * 300 + "a", "Root", "root:a\0b"):
        assert not withdrawn(placing, placing.repo.commits[0], "prod", path=path)


def test_a_branch_that_went_elsewhere(placing: LoadedFleet) -> None:
    """What its head left behind was served, as long as that is kept; what is merely in the repository was not."""
    begin, side = placing.repo.head, placing.repo.commit({f"{A}/more.yaml": config("more")})
    placing.repo.commit({f"{A}/placement.yaml": None}, parent=begin)
    placing.load()
    head = placing.repo.head
    assert withdrawn(placing, begin, "prod")
    assert not withdrawn(placing, side, "prod")
    keep.keep(placing.mirror.repository, side, head, date.today())
    assert withdrawn(placing, side, "prod")


def test_a_repository_that_is_behind_takes_nothing_away(placing: LoadedFleet) -> None:
    """A clone that lags: the inventory names a commit that it does not know to be served."""
    before = placing.repo.head
    later = placing.repo.commit({f"{A}/second.yaml": placement("second")})
    placing.repo.commit({}, parent=before)
    placing.load()
    assert not withdrawn(placing, later, "second")


def test_what_is_stored_counts_whoever_made_it(placing: LoadedFleet) -> None:
    first = placing.repo.head
    key = placing.key("root:a", "placements.scheduling.kcp.io", "prod", "")
    stored = placing.get("root:a", "placements.scheduling.kcp.io", "prod", "")
    placing.commit({f"{A}/placement.yaml": None})
    placing.put(key, stored)
    assert not withdrawn(placing, first, "prod")


def test_before_the_fleet_is_loaded_nothing_is_known(placing: LoadedFleet) -> None:
    first = placing.repo.head
    placing.commit({f"{A}/placement.yaml": None})
    placing.store.write(tree.put_fleet(replace(placing.fleet(), loaded=False))).result()
    assert not withdrawn(placing, first, "prod")


def test_a_held_commit_takes_nothing_away(placing: LoadedFleet) -> None:
    first = placing.repo.head
    placing.commit({f"{A}/placement.yaml": None, f"{A}/bad.yaml": "kind: Nonsense"})
    assert "root:a" in placing.held()
    assert not withdrawn(placing, first, "prod")
    placing.commit({f"{A}/bad.yaml": None})
    assert withdrawn(placing, first, "prod")


def test_a_namespace_that_no_file_declares_has_its_name_alone(placing: LoadedFleet) -> None:
    every = placement("every").replace("{matchLabels: {app: web}}", "{}")
    placing.commit({f"{A}/every.yaml": every})
    first = placing.repo.head
    placing.commit({f"{A}/every.yaml": None})
    assert withdrawn(placing, first, "every", name="default")
    assert not withdrawn(placing, first, "prod", name="default")
