"""What people see where they look: of a fleet in which something is wrong, in every place that speaks of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.plane import Clone, Plane

A = "workspaces/root/a"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: truth}\n"
BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: said}\ndata: {a: [1]}\n"
SERVED = "newest commit is served"


def config(said: str) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: said}}\ndata: {{a: {said}}}\n"


def push(clone: Clone, path: str, text: str) -> str:
    clone.write(path, text)
    clone.commit(f"Change {path}")
    return clone.push("origin", "HEAD:main")


def row(plane: Plane, name: str = "a") -> dict[str, str]:
    """The columns PHASE, HELD and LAG of a workspace, as kubectl prints them."""
    head, line = plane.kubectl("get", "workspaces", name, workspace="root").splitlines()
    starts = [(word, head.index(f" {word} ") + 1) for word in ("PHASE", "COMMIT", "PINNED", "HELD", "LAG", "URL")]
    return {word: line[at : starts[number + 1][1]].strip() for number, (word, at) in enumerate(starts[:-1])}


def described(plane: Plane, kind: str, name: str, workspace: str) -> str:
    return plane.kubectl("describe", kind, name, workspace=workspace).partition("\nEvents:")[2]


def condition(plane: Plane, workspace: str, kind: str) -> dict[str, Any]:
    found = plane.get(f"/clusters/{workspace}/apis/core.kcp.io/v1alpha1/logicalclusters/cluster")
    said: dict[str, Any] = next(each for each in found["status"]["conditions"] if each["type"] == kind)
    return said


def readyz(plane: Plane) -> str:
    return str(plane.kubectl("get", "--raw", "/readyz?verbose"))


def test_held_and_mended_wherever_somebody_looks(plane: Callable[..., Plane], tmp_path: Path, eventually: Any) -> None:
    folder = tmp_path / "fleet"
    (folder / A).mkdir(parents=True)
    (folder / "treeplane.yaml").write_text(FLEET)
    (folder / "workspaces/root/said.yaml").write_text(config("root"))
    (folder / A / "workspace.yaml").touch()
    (folder / A / "said.yaml").write_text(config("first"))
    running = plane(folder)
    clone = running.clone(tmp_path / "clone")
    assert (row(running)["HELD"], row(running)["LAG"]) == ("", "")
    assert "Events" not in described(running, "workspace", "a", "root"), "a first load says nothing"
    assert running.get("/clusters/root/api/v1/events")["items"] == []
    assert "[+]fleet ok" in readyz(running)

    # A workspace that is held.
    assert "held" in push(clone, f"{A}/said.yaml", BAD)
    push(clone, "workspaces/root/said.yaml", config("another"))
    eventually(lambda: row(running)["LAG"] == "2", 30, "two commits behind")
    assert row(running)["HELD"].startswith("said.yaml:")
    assert "a [held: 2 commits behind, said.yaml:" in running.kubectl("ws", "tree")
    assert condition(running, "root:a", "CommitApplied")["status"] == "False"
    eventually(lambda: "Held" in described(running, "workspace", "a", "root"), 30)
    assert "treeplane" in described(running, "workspace", "a", "root")
    eventually(lambda: "Held" in described(running, "logicalcluster", "cluster", "root:a"), 30)
    eventually(lambda: "root:a is held back" in running.output(), 30)

    # The fleet as a whole.
    assert "is not served" in push(clone, "treeplane.yaml", "kind: [")
    eventually(lambda: condition(running, "root", "FleetFollowed")["status"] == "False", 30)
    assert "[-]fleet Held" in readyz(running)
    eventually(lambda: row(running)["LAG"] == "3", 30, "it is counted once the load is over")
    eventually(lambda: "FleetHeld" in described(running, "logicalcluster", "cluster", "root"), 30)
    eventually(lambda: "commit" in running.output() and "is held:" in running.output(), 30)

    # Neither any more; the Events stay, and a restart adds nothing.
    push(clone, "treeplane.yaml", FLEET)
    push(clone, f"{A}/said.yaml", config("good"))
    eventually(lambda: row(running)["HELD"] == row(running)["LAG"] == "", 30)
    assert "[+]fleet ok" in readyz(running)
    eventually(lambda: "Mended" in described(running, "workspace", "a", "root"), 30)
    eventually(lambda: "Mended" in described(running, "logicalcluster", "cluster", "root:a"), 30)
    eventually(lambda: "FleetFollowed" in described(running, "logicalcluster", "cluster", "root"), 30)
    eventually(lambda: "root:a is held back no more" in running.output() or "1 Mended" in running.output(), 30)
    before = reasons(running)
    assert running.stop() == 0
    running.start()
    assert reasons(running) == before
    assert SERVED not in running.output()


def reasons(plane: Plane) -> list[tuple[str, int]]:
    items = [event for where in ("root", "root:a") for event in plane.get(f"/clusters/{where}/api/v1/events")["items"]]
    return sorted((event["reason"], event["count"]) for event in items)


def test_a_first_load_places_without_a_word(plane: Callable[..., Plane], example_fleet: Path, eventually: Any) -> None:
    running = plane(example_fleet)
    head, *lines = running.kubectl("get", "placements", "-A", workspace="root:shop:web").splitlines()
    assert "SYNCED" in head.split()
    assert lines
    eventually(lambda: "True" in running.kubectl("get", "placements", workspace="root:shop:web"), 20)
    assert running.get("/clusters/root:shop:web/api/v1/events")["items"] == [], "nor does the first placing"
