"""What a push has a workspace take of another one is asked of whoever pushed it, as of a request: two tenants on one
branch, in the running server and after a recovery.

`root:b` is bob's: it offers the export `widgets` and the type `gold`. `root:a` is alice's, who would have both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.loadedfleet import configmap
from support.moving import HEAD
from support.ownedfleet import ADMIN, OWNERS_YAML, OwnedFleet, granting, pushers
from support.recoveries import assert_same
from support.shipped import WORKLOAD
from support.shipped import binding as shipped
from support.widgets import binding, export, schema

R = "workspaces/root"
BINDINGS, EXPORTS, TYPES = "apibindings.apis.kcp.io", "apiexports.apis.kcp.io", "workspacetypes.tenancy.kcp.io"
TARGETS = "synctargets.workload.kcp.io"
UNBOUND = "no permission to bind to export root:b:widgets"
UNUSED = "unable to use workspace type root:b:gold: missing verb='use' permission on workspacetype"


def kind(name: str, spec: str = "{}") -> str:
    return f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def of_type(name: str, path: str = "") -> str:
    return f"{HEAD}spec: {{type: {{name: {name}{f', path: {path!r}' if path else ''}}}}}\n"


def target(*exports: str) -> str:
    named = ", ".join(f"{{path: 'root:b', export: {export}}}" for export in exports)
    return (
        "apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {name: t}\n"
        f"spec: {{supportedAPIExports: [{named}]}}\n"
    )


OFFERED = {
    f"{R}/b/schema.yaml": schema(),
    f"{R}/b/export.yaml": export(),
    f"{R}/b/gold.yaml": kind("gold"),
}
SLICE = (
    "apiVersion: apis.kcp.io/v1alpha1\nkind: APIExportEndpointSlice\nmetadata: {name: s}\n"
    "spec: {export: {path: 'root:b', name: widgets}}\n"
)
TAKINGS = {
    "binding": ({f"{R}/a/take.yaml": binding("root:b")}, "root:a", "APIBinding widgets", UNBOUND),
    "older spelling": (
        {f"{R}/a/take.yaml": binding("root:b").replace("kcp.io", "kcp.dev")},
        "root:a",
        "APIBinding widgets",
        UNBOUND,
    ),
    "escaped": (
        {f"{R}/a/take.json": binding("root:b").replace('"APIBinding"', '"\\u0041PIBinding"')},
        "root:a",
        "APIBinding widgets",
        UNBOUND,
    ),
    "slice": ({f"{R}/a/take.yaml": SLICE}, "root:a", "APIExportEndpointSlice s", UNBOUND),
    "type's binding": (
        {f"{R}/a/take.yaml": kind("own", "{defaultAPIBindings: [{path: 'root:b', export: widgets}]}")},
        "root:a",
        "WorkspaceType own",
        UNBOUND,
    ),
    "extended type": (
        {f"{R}/a/take.yaml": kind("own", "{extend: {with: [{path: 'root:b', name: gold}]}}")},
        "root:a",
        "WorkspaceType own",
        UNUSED,
    ),
    "default child": (
        {f"{R}/a/take.yaml": kind("own", "{defaultChildWorkspaceType: {path: 'root:b', name: gold}}")},
        "root:a",
        "WorkspaceType own",
        UNUSED,
    ),
    "target": (
        {f"{R}/a/bind.yaml": shipped(WORKLOAD), f"{R}/a/take.yaml": target("widgets")},
        "root:a",
        "SyncTarget t",
        UNBOUND,
    ),
    "type": (
        {f"{R}/a/kid/workspace.yaml": of_type("gold", "root:b"), f"{R}/a/kid/app.yaml": configmap()},
        "root:a:kid",
        "Workspace kid",
        UNUSED,
    ),
}
EACH = pytest.mark.parametrize(("files", "path", "what", "why"), TAKINGS.values(), ids=TAKINGS)


@pytest.fixture
def owned(tmp_path: Path) -> Iterator[OwnedFleet]:
    made = OwnedFleet(tmp_path / "fleet")
    made.begin(OFFERED)
    assert made.held() == {}
    yield made
    made.close()


@pytest.fixture
def recovered(tmp_path: Path) -> Iterator[Callable[[OwnedFleet], OwnedFleet]]:
    made: list[OwnedFleet] = []

    def recover(fleet: OwnedFleet) -> OwnedFleet:
        fleet.publish()
        made.append(OwnedFleet(tmp_path / f"recovered{len(made)}", fleet))
        made[-1].load(made[-1].recorded())
        assert_same(made[-1], fleet)
        return made[-1]

    yield recover
    for each in made:
        each.close()


def allow(fleet: OwnedFleet, *users: str, only: str = "") -> None:
    """By bob, in root:b."""
    fleet.push(
        "bob",
        {
            f"{R}/b/bind.yaml": granting("bind", EXPORTS, *users, name="bind", only=only),
            f"{R}/b/use.yaml": granting("use", TYPES, *users, name="use"),
        },
    )


@EACH
def test_who_may_not_take_it_is_held_in_the_words_of_the_api(
    owned: OwnedFleet,
    recovered: Callable[[OwnedFleet], OwnedFleet],
    files: dict[str, str],
    path: str,
    what: str,
    why: str,
) -> None:
    owned.push("alice", {**files, f"{R}/b/app.yaml": configmap()})
    commit, file = owned.repo.head, [*files][-1] if "kid" not in path else f"{R}/a/kid/workspace.yaml"
    assert owned.held() == {
        path: [
            f"{file}: {what}, in {commit:.10}, pushed by alice: {why} (take it back, or have somebody who may push it, "
            f"or a commit that says `Allow-Push: {commit}`)"
        ]
    }
    assert path == "root:a" or not owned.record(path).served
    again = recovered(owned)
    # Nobody is asked once more, whatever he may by now.
    allow(owned, "alice")
    again.load()
    assert owned.held().keys() == again.held().keys() == {path}
    assert_same(again, owned)
    # It is gone when it is taken back.
    owned.push("alice", dict.fromkeys(files))
    again.load()
    assert owned.held() == again.held() == {}
    assert_same(again, owned)


@EACH
def test_who_may_takes_it(owned: OwnedFleet, files: dict[str, str], path: str, what: str, why: str) -> None:
    allow(owned, "alice")
    owned.push("alice", files)
    assert owned.held() == {}
    assert owned.record(path).served
    # A right that is taken away later takes nothing of what is served.
    allow(owned, "nobody")
    owned.push("alice", {name: f"{text}\n" for name, text in files.items()})
    owned.push("alice", {f"{R}/a/more.yaml": configmap("more")})
    assert owned.held() == {}


@EACH
def test_whoever_may_push_where_it_is_offered_may_take_it(
    owned: OwnedFleet, files: dict[str, str], path: str, what: str, why: str
) -> None:
    """He could give himself any right there."""
    owned.push("bob", {f"{R}/b/pushers.yaml": pushers("bob", "alice")})
    owned.push("alice", files)
    assert owned.held() == {}


@EACH
@pytest.mark.parametrize("user", ["carol", ADMIN])
def test_whoever_may_push_to_root_takes_all(
    owned: OwnedFleet, user: str, files: dict[str, str], path: str, what: str, why: str
) -> None:
    owned.push(user, files)
    assert owned.held() == {}


@EACH
def test_somebody_who_has_the_right_allows_it(
    owned: OwnedFleet, files: dict[str, str], path: str, what: str, why: str
) -> None:
    owned.push("alice", files)
    said = f"Allow\n\nAllow-Push: {owned.repo.head}\n"
    owned.push("alice", {}, said)
    owned.push("dave", {}, said)
    assert owned.held().keys() == {path}
    owned.push("bob", {}, said)
    assert owned.held() == {}
    assert owned.record(path).served


@EACH
@pytest.mark.parametrize("user", ["alice", ADMIN])
def test_or_pushes_it_himself(
    owned: OwnedFleet, user: str, files: dict[str, str], path: str, what: str, why: str
) -> None:
    owned.push("alice", files)
    allow(owned, "alice")
    assert owned.held().keys() == {path}
    owned.push(user, {f"{R}/a/more.yaml": configmap("more")})
    assert owned.held().keys() == {path}
    owned.push(user, {name: f"{text}\n" for name, text in files.items()})
    assert owned.held() == {}
    assert owned.record(path).served


@EACH
def test_whom_nobody_knows_takes_nothing(
    owned: OwnedFleet, files: dict[str, str], path: str, what: str, why: str
) -> None:
    allow(owned, "alice")
    owned.repo.commit(files)
    owned.load()
    told = "" if path.endswith("kid") else f": {why}"  # of what nobody may make no more is said
    nobody = f"of whom it is not known who pushed it, since it is not signed{told}"
    assert any(nobody in error for error in owned.held()[path])


@EACH
def test_without_owners_nobody_is_asked(tmp_path: Path, files: dict[str, str], path: str, what: str, why: str) -> None:
    fleet = OwnedFleet(tmp_path / "fleet")
    fleet.begin({**OFFERED, "treeplane.yaml": OWNERS_YAML.replace("true", "false")})
    fleet.push("alice", files)
    assert fleet.held() == {}
    fleet.close()
