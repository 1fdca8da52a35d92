"""What a push has a workspace take of another one is asked of whoever pushed it, as of a request: each kind of thing,
in the running server and after a recovery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.loadedfleet import configmap
from support.offering import OFFERED, UNBOUND, UNUSED, R, allow, kind, of_type, target
from support.ownedfleet import ADMIN, OWNERS_YAML, OwnedFleet, granting, pushers
from support.recoveries import assert_same
from support.shipped import WORKLOAD
from support.shipped import binding as shipped
from support.widgets import binding, export, schema

from apiserver.model import marks
from apiserver.model.storagenames import EXPORTS
from reconciler.loading.heads import BranchSettings
from reconciler.signatures.own import CommitKey
from reconciler.signatures.verifier import Verifier

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


# -- what is one answer, and what is nobody's


def test_what_is_not_there_and_what_one_may_not_are_one_answer(owned: OwnedFleet) -> None:
    told = set()
    for path, name in (("root:b", "widgets"), ("root:b", "nothing"), ("root:nowhere", "widgets")):
        owned.push("alice", {f"{R}/a/take.yaml": binding(path, wanted=name)})
        [*_, error] = owned.held()["root:a"]
        told.add(
            error.replace(f"{path}:{name}", "it").replace(owned.repo.head, "").replace(f"{owned.repo.head:.10}", "")
        )
        owned.push("alice", {f"{R}/a/take.yaml": None})
    assert len(told) == 1


def test_what_ships_is_everybodys(owned: OwnedFleet) -> None:
    owned.push("alice", {f"{R}/a/take.yaml": shipped(WORKLOAD), f"{R}/a/kid/workspace.yaml": of_type("team", "root")})
    assert owned.held() == {}
    assert owned.record("root:a:kid").type == "root:team"


def test_what_is_ones_own_needs_no_more(owned: OwnedFleet) -> None:
    """Whoever may push in root:a takes what root:a offers, below it too, all of it new."""
    own = {f"{R}/a/schema.yaml": schema(), f"{R}/a/export.yaml": export(), f"{R}/a/gold.yaml": kind("gold")}
    below = {f"{R}/a/kid/workspace.yaml": of_type("gold"), f"{R}/a/kid/take.yaml": binding("root:a")}
    owned.push("alice", {**own, **below})
    assert owned.held() == {}
    assert owned.record("root:a:kid").type == "root:a:gold"


def test_a_right_by_name_is_for_that_alone(owned: OwnedFleet) -> None:
    allow(owned, "alice", only="gadgets")
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b", wanted="gadgets")})
    assert owned.held() == {}  # and waits for it to be there
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b")})
    assert UNBOUND in owned.held()["root:a"][-1]


def test_a_right_that_comes_with_the_push_does_not_count_for_it(owned: OwnedFleet) -> None:
    owned.push("carol", {f"{R}/b/pushers.yaml": pushers("bob"), f"{R}/a/pushers.yaml": pushers("alice", "bob")})
    allow(owned, "nobody")
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b"), f"{R}/b/more.yaml": granting("bind", EXPORTS, "alice")})
    assert any(UNBOUND in error for error in owned.held()["root:a"])


def test_a_right_that_only_the_api_knows_of_counts_for_nothing(owned: OwnedFleet) -> None:
    """It would be gone after a recovery."""
    allow(owned, "dave")
    roles = "clusterrolebindings.rbac.authorization.k8s.io"
    there = owned.get("root:b", roles, "bind", "")
    made = {**there, "metadata": {**there["metadata"], "name": "api", "annotations": {marks.ORIGIN: marks.RUNTIME}}}
    made["subjects"] = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}]
    owned.put(owned.key("root:b", roles, "api", ""), made)
    owned.push("alice", {f"{R}/a/take.yaml": binding("root:b")})
    assert UNBOUND in owned.held()["root:a"][0]


def test_the_servers_own_commits_were_asked_as_writes(owned: OwnedFleet) -> None:
    key = CommitKey(Ed25519PrivateKey.generate())
    owned.vouching = replace(owned.vouching, verifier=Verifier(key))
    owned.loader = owned.new_loader()
    owned.repo.commit({f"{R}/a/take.yaml": binding("root:b")}, sign=key.sign)
    owned.load()
    assert owned.held() == {}


def test_whoever_runs_the_server_is_not_asked(owned: OwnedFleet, tmp_path: Path) -> None:
    local = OwnedFleet(tmp_path / "local", local=True)
    local.begin(OFFERED)
    local.commit({f"{R}/a/take.yaml": binding("root:b")})
    assert local.held() == {}
    local.close()
    # Nor where he takes a head, whoever pushed it.
    owned.pushed("alice", {f"{R}/a/take.yaml": binding("root:b")})
    owned.loader = owned.new_loader(BranchSettings(vouching=owned.vouching, take=owned.repo.head))
    owned.load()
    assert owned.held() == {}
