"""docs/owners.md: what is to be copied from it does what it says, as it is printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.fleetrepo import TREEPLANE_YAML, Files
from support.loadedfleet import BEGINNING, B, configmap
from support.ownedfleet import ADMIN, OwnedFleet, pushers
from support.signing import run
from support.widgets import binding, export, schema

from apiserver.auth.user import AUTHENTICATED, User
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loaded
from reconciler.repository.pushrecords import PushRecord

DOCUMENT = Path(__file__).parents[4] / "docs" / "owners.md"
SHOP = "workspaces/root/shop"
APP = f"{SHOP}/app.yaml"


def block(language: str, containing: str) -> str:
    """The one block with this in it; its lines in a list are not moved in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```$", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)
    [(indent, text)] = [each for each in found if containing in each[1]]
    return re.sub(f"^{indent}", "", text, flags=re.MULTILINE)


OWNERS, PUSHERS = block("yaml", "owners: true"), block("yaml", "name: pushers")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[OwnedFleet]:
    made = OwnedFleet(tmp_path / "fleet")
    yield made
    made.close()


def begun(fleet: OwnedFleet, files: Files) -> OwnedFleet:
    fleet.commit(
        {**BEGINNING, f"{SHOP}/workspace.yaml": "", APP: configmap(), f"{SHOP}/web/workspace.yaml": "", **files}
    )
    return fleet


def typed(fleet: OwnedFleet, work: Path, commands: str, commit: str, user: str) -> Loaded:
    """In a clone, by somebody who pushes it."""
    run("git", "clone", "-q", fleet.repo.path, work)
    old = fleet.repo.head
    for name, value in (("name", user), ("email", f"{user}@example.com")):
        run("git", "-C", work, "config", f"user.{name}", value)
    run("sh", "-euxc", f'cd "$1"\n{commands.replace("<commit>", commit)}', "sh", work)
    fleet.pushes.made[fleet.repo.head] = PushRecord(old, User(user, (AUTHENTICATED,)).as_json())
    return fleet.load()


@pytest.mark.parametrize(
    ("user", "may"),
    [(User("alice", ()), True), (User("dora", ("shop-team",)), True), (User("bob", (AUTHENTICATED,)), False)],
)
def test_the_right_in_a_workspace(fleet: OwnedFleet, user: User, may: bool) -> None:
    begun(fleet, {"treeplane.yaml": OWNERS, f"{SHOP}/pushers.yaml": PUSHERS})
    fleet.push(user, {APP: configmap(a="new"), f"{SHOP}/web/app.yaml": configmap(a="new")})
    assert fleet.held().keys() == (set() if may else {"root:shop", "root:shop:web"})
    assert fleet.data("root:shop") == {"a": "new" if may else "b"}
    fleet.push(user, {"workspaces/root/app.yaml": configmap(a="new")})
    assert "root" in fleet.held()


@pytest.mark.parametrize("granted", [True, False])
def test_the_right_to_what_a_workspace_offers(fleet: OwnedFleet, *, granted: bool) -> None:
    own = {f"{B}/pushers.yaml": pushers("bob"), f"{SHOP}/schema.yaml": schema(), f"{SHOP}/export.yaml": export()}
    text = block("yaml", "name: bind-widgets")
    begun(fleet, {"treeplane.yaml": OWNERS, **own, **({f"{SHOP}/bind.yaml": text} if granted else {})})
    fleet.push("bob", {f"{B}/widgets.yaml": binding("root:shop")})
    assert fleet.held().keys() == (set() if granted else {"root:b"})


def test_what_was_pushed_is_taken_back(fleet: OwnedFleet, tmp_path: Path) -> None:
    begun(fleet, {"treeplane.yaml": OWNERS, f"{SHOP}/pushers.yaml": PUSHERS})
    fleet.push("bob", {APP: configmap(a="stolen")})
    assert fleet.held().keys() == {"root:shop"}
    typed(fleet, tmp_path / "work", block("sh", "git revert"), fleet.repo.head, "bob")
    assert fleet.held() == {}


def test_what_was_pushed_is_allowed(fleet: OwnedFleet, tmp_path: Path) -> None:
    """Whatever came meanwhile."""
    begun(fleet, {"treeplane.yaml": OWNERS, f"{SHOP}/pushers.yaml": PUSHERS})
    fleet.push("bob", {f"{SHOP}/more.yaml": configmap("more", a="stolen")})
    did = fleet.repo.head
    fleet.push("alice", {APP: configmap(a="new")})
    fleet.push("alice", {f"{SHOP}/more.yaml": None})
    assert fleet.held().keys() == {"root:shop"}
    typed(fleet, tmp_path / "work", block("sh", "Allow-Push"), did, "alice")
    assert fleet.held() == {}
    assert fleet.data("root:shop") == {"a": "new"}
    assert fleet.data("root:shop", "more") is None


def test_in_an_emergency_who_runs_the_server_says_it(fleet: OwnedFleet) -> None:
    """Nobody has the right in root."""
    begun(fleet, {"treeplane.yaml": OWNERS})
    fleet.push("bob", {"workspaces/root/app.yaml": configmap(a="new")})
    did = fleet.repo.head
    files = {"workspaces/root/pushers.yaml": pushers("carol"), "treeplane.yaml": OWNERS + "  push: Refuse\n"}
    fleet.push("carol", files, f"Take it\n\nAllow-Push: {did}\n")
    assert fleet.fleet().error != ""
    branch = BranchSettings(vouching=fleet.vouching, take=fleet.repo.head[:10])
    fleet.loader = fleet.new_loader(branch)
    fleet.load()
    assert (fleet.fleet().error, fleet.held()) == ("", {})
    assert fleet.data("root") == {"a": "new"}
    fleet.loader = fleet.new_loader(replace(branch, take=""))
    fleet.push("carol", {"workspaces/root/app.yaml": configmap(a="carol's")})
    assert fleet.data("root") == {"a": "carol's"}


def test_from_none_to_owners_and_back(fleet: OwnedFleet) -> None:
    begun(fleet, {"treeplane.yaml": TREEPLANE_YAML})
    fleet.push("bob", {f"{SHOP}/pushers.yaml": PUSHERS, "workspaces/root/pushers.yaml": pushers("carol")})
    fleet.push("bob", {"treeplane.yaml": OWNERS})
    fleet.push("bob", {APP: configmap(a="stolen")})
    assert fleet.held().keys() == {"root:shop"}
    fleet.push("alice", {APP: configmap()})
    fleet.push("alice", {APP: configmap(a="new")})
    assert fleet.data("root:shop") == {"a": "new"}
    fleet.push("carol", {"treeplane.yaml": OWNERS.replace("true", "false")})
    fleet.push("bob", {APP: configmap(a="anybody's")})
    assert (fleet.held(), fleet.data("root:shop")) == ({}, {"a": "anybody's"})


def test_administrators_have_it_by_what_ships(fleet: OwnedFleet) -> None:
    begun(fleet, {"treeplane.yaml": OWNERS})
    fleet.push(User("kcp-admin", ("system:kcp:admin", AUTHENTICATED)), {APP: configmap(a="1")})
    fleet.push(ADMIN, {APP: configmap(a="2"), "README.md": "Ours\n"})
    assert (fleet.held(), fleet.fleet().error, fleet.data("root:shop")) == ({}, "", {"a": "2"})
