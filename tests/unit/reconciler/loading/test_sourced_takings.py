"""What a tenant's repository takes of other workspaces is asked of whoever stands for it, where owners are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from support.fakerenders import FakeRenders
from support.loadedfleet import A, LoadedFleet, configmap
from support.offering import OFFERED, UNBOUND, R
from support.ownedfleet import OWNED, MadeUpPushes, granting
from support.recoveries import recover
from support.sourcedfleet import SourcedFleet, TenantRepos, sourcing
from support.widgets import binding

from apiserver.auth.user import AUTHENTICATED, User
from apiserver.model import marks
from apiserver.model.storagenames import EXPORTS
from apiserver.registry import tree
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loader
from reconciler.loading.vouching import Vouching
from reconciler.repository.pushrecords import PushRecord
from reconciler.signatures.verifier import Verifier


class OwnedSources(SourcedFleet):
    """`root` is carol's, `root:b` bob's, who offers an export there."""

    pushes = MadeUpPushes()

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        vouching = Vouching(self.pushes, Verifier(None), self.directory / "signers")
        return super().new_loader(branch or BranchSettings(vouching=vouching))

    def by(self, user: str, files: dict[str, str | None]) -> None:
        """A push to the fleet, and what follows from it."""
        old = self.repo.head
        new = self.repo.commit(files)
        self.pushes.made[new] = PushRecord(old, User(user, (AUTHENTICATED,)).as_json())
        self.load()
        self.follow()

    def owned_by(self, user: str) -> None:
        said = orjson.dumps(User(user, (AUTHENTICATED,)).as_json()).decode()
        key = self.key("root", "workspaces.tenancy.kcp.io", "a", "")
        self.update(key, lambda obj: obj["metadata"]["annotations"].update({marks.OWNER: said}))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[OwnedSources]:
    made = OwnedSources(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.commit({**OWNED, **OFFERED})
    made.tenants.push({"deploy/app.yaml": configmap(a="shop")})
    made.by("carol", {f"{A}/app.yaml": None, f"{A}/pushers.yaml": None, f"{A}/workspace.yaml": sourcing()})
    assert made.held() == {}
    yield made
    made.close()


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Callable[..., LoadedFleet]]:
    made: list[OwnedSources] = []

    def open_another(fleet: OwnedSources, name: str = "second", *, keys: Path | None = None) -> OwnedSources:
        made.append(OwnedSources(tmp_path / name, fleet.tenants, fleet.repo, keys))
        return made[-1]

    yield open_another
    for each in made:
        each.close()


def test_an_export_is_bound_where_the_owner_may(fleet: OwnedSources) -> None:
    fleet.owned_by("tess")
    fleet.push({"deploy/binding.json": binding("root:b")})
    [said] = fleet.held()["root:a"]
    assert f"APIBinding widgets, for which tess stands: {UNBOUND}" in said
    assert said.startswith("deploy/binding.json:")
    assert fleet.data("root:a") == {"a": "shop"}
    assert tree.summary(fleet.store, "root:a")["trespasses"][0]["takes"][2:] == ["root:b", "widgets"]
    fleet.push({"deploy/app.yaml": configmap(a="later")})
    assert fleet.data("root:a") == {"a": "shop"}
    fleet.by("bob", {f"{R}/b/bind.yaml": granting("bind", EXPORTS, "tess", name="bind")})
    fleet.judged.clear()
    fleet.follow()
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "later"})
    # What is bound is not asked about again.
    fleet.by("bob", {f"{R}/b/bind.yaml": None})
    fleet.push({"deploy/app.yaml": configmap(a="last")})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "last"})


def test_it_is_taken_back_there(fleet: OwnedSources) -> None:
    fleet.owned_by("tess")
    fleet.push({"deploy/binding.json": binding("root:b")})
    assert fleet.held()
    fleet.push({"deploy/binding.json": None})
    assert fleet.held() == {}
    assert "trespasses" not in tree.summary(fleet.store, "root:a")


def test_without_an_owner_whoever_set_the_source_stands_for_it(
    fleet: OwnedSources, another: Callable[..., LoadedFleet]
) -> None:
    """Carol may push everywhere, and so may have bound what she likes."""
    fleet.push({"deploy/binding.json": binding("root:b")})
    assert fleet.held() == {}
    fleet.publish()
    new = recover(fleet, another)
    assert isinstance(new, OwnedSources)
    new.follow()
    assert new.held() == {}
    assert new.find("root:a", "apibindings.apis.kcp.io", "widgets") is not None


def test_what_a_workspace_below_takes_is_asked_of_the_same(fleet: OwnedSources) -> None:
    kid = "deploy/kid"
    fleet.owned_by("tess")
    fleet.push({f"{kid}/workspace.yaml": "", f"{kid}/app.yaml": configmap(a="kid")})
    assert (fleet.held(), fleet.data("root:a:kid")) == ({}, {"a": "kid"})
    fleet.push({f"{kid}/binding.json": binding("root:b"), "deploy/app.yaml": configmap(a="later")})
    [said] = fleet.held()["root:a:kid"]
    assert f"APIBinding widgets, for which tess stands: {UNBOUND}" in said
    assert said.startswith(f"{kid}/binding.json:")
    assert fleet.data("root:a") == {"a": "later"}
    fleet.by("bob", {f"{R}/b/bind.yaml": granting("bind", EXPORTS, "tess", name="bind")})
    fleet.loader.look_again({"root:a"})
    assert fleet.held() == {}
    assert fleet.find("root:a:kid", "apibindings.apis.kcp.io", "widgets")


def test_what_a_program_makes_there_is_asked_too(fleet: OwnedSources) -> None:
    """It is judged when its output is known: then whoever stands for it can be asked, as about any file."""
    fleet.renders = FakeRenders()
    fleet.loader = fleet.new_loader()
    fleet.owned_by("tess")
    entry = "deploy/k/kustomization.yaml"
    fleet.push({entry: "resources: [take.yaml]\n", "deploy/k/take.yaml": binding("root:b")})
    [said] = fleet.held()["root:a"]
    assert f"{entry}: APIBinding widgets, for which tess stands: {UNBOUND}" in said
    assert fleet.data("root:a") == {"a": "shop"}
    fleet.by("bob", {f"{R}/b/bind.yaml": granting("bind", EXPORTS, "tess", name="bind")})
    fleet.judged.clear()
    fleet.follow()
    assert fleet.held() == {}
    assert fleet.find("root:a", "apibindings.apis.kcp.io", "widgets") is not None


def test_a_pin_is_asked_about_too(fleet: OwnedSources) -> None:
    """Of a commit that was passed over: nobody was asked about that."""
    fleet.owned_by("tess")
    takes = fleet.tenants.push({"deploy/binding.json": binding("root:b")})
    fleet.push({"deploy/binding.json": None})
    assert fleet.held() == {}
    text = sourcing().replace("spec: {", f"spec: {{serve: {{commit: {takes}}}, ")
    fleet.by("carol", {f"{A}/workspace.yaml": text})
    [said] = fleet.held()["root:a"]
    assert f"APIBinding widgets, for which tess stands: {UNBOUND}" in said
    assert fleet.find("root:a", "apibindings.apis.kcp.io", "widgets") is None
    fleet.by("carol", {f"{A}/workspace.yaml": sourcing()})
    assert fleet.held() == {}
