"""What is followed for the workspaces that are there, over a real git server, and what they say of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import FleetRepo
from support.gitserver import GitAsked, GitServer
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.sourcedfleet import HEAD, sourcing

from apiserver.model.tables import Table
from apiserver.registry import looks
from apiserver.registry.looks import Looked
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.sourcing import Sourcing
from reconciler.loading import feeds
from reconciler.loading.sources import Sources
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.rendering.request import RenderRequest

SECRET = "keys"
_LONG = 60.0


class Followed:
    """A fleet, a git server with a tenant's repository `shop.git`, and what follows it."""

    def __init__(
        self, folder: Path, trusted: tuple[str, ...] = ("root:a",), renders: FakeRenders | None = None
    ) -> None:
        self.git = GitServer(folder / "remotes", folder / "remote-keys")
        (folder / "remotes").mkdir()
        self.shop = FleetRepo(folder / "remotes" / "shop.git")
        self.shop.commit({"deploy/app.yaml": configmap(a="shop")})
        self.fleet = LoadedFleet(folder / "fleet", renders=renders or NOWHERE)
        self.rung = threading.Event()
        settings = ReconcileSettings(
            self.fleet.directory, self.fleet.keys, source=str(self.fleet.repo.path), url="https://fleet.example.org",
            local_url="u", trusted_sources=trusted, source_interval=0.2, hosted=True,
        )  # fmt: skip
        self.settings = settings
        self.sourcing = self.follower(renders or NOWHERE)
        self.sourcing.lend(self.fleet.loader)
        self.fleet.begin()
        self.sourcing.start()

    def follower(self, renders: Renders) -> Sourcing:
        return Sourcing(self.settings, self.fleet.store, self.fleet.mirror, self.rung.set, renders)

    def close(self) -> None:
        self.sourcing.close()
        self.git.close()
        self.fleet.close()

    def source(self, at: str = A, name: str = "shop.git", secret: str = SECRET) -> None:
        said = sourcing(self.git.url(name), secretRef={"name": secret})
        self.fleet.commit({f"{at}/app.yaml": None, f"{at}/workspace.yaml": said})

    def give(self, name: str = SECRET, **data: str) -> None:
        """A Secret in root."""
        said = {"caFile": self.git.ca.decode(), **data}
        lines = "".join(
            f"  {key}: |-\n    {value.strip().replace(chr(10), chr(10) + '    ')}\n" for key, value in said.items()
        )
        text = f"apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData:\n{lines}"
        self.fleet.keep_secret("root", text)

    def until(self, holds: Callable[[], bool]) -> None:
        """As the holder does, look by look."""
        ends = time.monotonic() + _LONG
        while time.monotonic() < ends:
            self.sourcing.serve(self.fleet.loader.look_again)
            if holds():
                return
            self.rung.wait(0.1)
            self.rung.clear()
        pytest.fail(f"it never came to that: {self.said()}, {self.fleet.held()}")

    def said(self, path: str = "root:a") -> dict[str, Any] | None:
        found = self.fleet.workspace(path)["status"]["conditions"]
        return next((each for each in found if each["type"] == "SourceFollowed"), None)

    def says(self, reason: str, path: str = "root:a") -> bool:
        return (self.said(path) or {}).get("reason") == reason


@pytest.fixture
def followed(tmp_path: Path) -> Iterator[Followed]:
    made = Followed(tmp_path)
    yield made
    made.close()


def test_what_is_pushed_there_is_served(followed: Followed) -> None:
    followed.give()
    followed.source()
    assert followed.fleet.held() != {}
    followed.until(lambda: followed.fleet.data("root:a") == {"a": "shop"} and followed.says("Followed"))
    assert followed.fleet.held() == {}
    followed.shop.commit({"deploy/app.yaml": configmap(a="new")})
    followed.until(lambda: followed.fleet.data("root:a") == {"a": "new"})
    followed.fleet.commit({f"{A}/workspace.yaml": HEAD, f"{A}/app.yaml": configmap(a="home")})
    assert (followed.fleet.held(), followed.said()) == ({}, None)
    cluster = followed.fleet.get("root:a", "logicalclusters.core.kcp.io", "cluster", "")
    assert "SourceFollowed" not in {each["type"] for each in cluster["status"]["conditions"]}


def test_a_remote_that_is_away_leaves_what_is_served_and_says_so(followed: Followed) -> None:
    followed.give()
    followed.source()
    followed.until(lambda: followed.says("Followed"))
    since = followed.fleet.store.revision()

    def fails(asked: GitAsked) -> bool:
        asked.reply(b"", 500)
        return True

    followed.git.spoil = fails
    followed.until(lambda: followed.says("Failing"))
    said = followed.said()
    assert said is not None
    assert said["status"] == "False"
    assert "what is served of it stays" in said["message"]
    assert (followed.fleet.held(), followed.fleet.data("root:a")) == ({}, {"a": "shop"})
    assert followed.fleet.workspace("root:a")["status"]["phase"] == "Ready"
    assert since < followed.fleet.store.revision()
    followed.fleet.publish()
    assert followed.fleet.residue("root:a", "logicalclusters.core.kcp.io", "cluster", "") is None
    followed.git.spoil = lambda _: False
    followed.until(lambda: followed.says("Followed"))
    assert followed.fleet.writer().flush() is None


def test_a_restart_says_nothing_of_a_source_before_it_looked(followed: Followed) -> None:
    """Else one that is away would be followed again and lost again by every start, and each would be an Event."""
    followed.give()
    followed.source()
    followed.until(lambda: followed.says("Followed"))
    asked, go_on = threading.Event(), threading.Event()

    def fails(request: GitAsked) -> bool:
        asked.set()
        go_on.wait(60)
        request.reply(b"", 500)
        return True

    go_on.set()
    followed.git.spoil = fails
    followed.until(lambda: followed.says("Failing"))
    followed.sourcing.close()
    go_on.clear()
    asked.clear()
    before = followed.said()
    followed.sourcing = followed.follower(NOWHERE)
    followed.sourcing.lend(followed.fleet.loader)
    followed.sourcing.start()
    followed.until(asked.is_set)
    assert followed.said() == before
    revision = followed.fleet.store.revision()
    go_on.set()
    followed.until(lambda: followed.said() is not None and not followed.rung.is_set())
    assert (followed.said(), followed.fleet.store.revision()) == (before, revision)
    followed.git.spoil = lambda _: False
    followed.until(lambda: followed.says("Followed"))


def test_a_branch_that_is_gone_takes_nothing_away(followed: Followed) -> None:
    followed.give()
    followed.source()
    followed.until(lambda: followed.says("Followed"))
    head = followed.shop.head
    followed.shop.repo.references.delete("refs/heads/main")
    followed.until(lambda: followed.says("BranchNotFound"))
    assert (followed.fleet.held(), followed.fleet.data("root:a")) == ({}, {"a": "shop"})
    followed.shop.repo.references.create("refs/heads/main", head)
    followed.until(lambda: followed.says("Followed"))


def test_credentials_are_of_a_secret_of_the_parent(followed: Followed) -> None:
    followed.git.password = "s3cret"
    followed.source()
    followed.until(lambda: followed.says("SecretRefused"))
    said = followed.said()
    assert said is not None
    assert "there is no Secret default/keys in root: put it into keys/secrets/root/" in said["message"]
    followed.give(username="u", password="wrong")
    followed.until(lambda: followed.says("Unauthorized"))
    followed.give(username="u", password="s3cret")
    followed.until(lambda: followed.fleet.data("root:a") == {"a": "shop"} and followed.says("Followed"))
    assert "s3cret" not in str(followed.fleet.workspace("root:a"))
    followed.give(username="u:v", password="s3cret")
    followed.until(lambda: followed.says("SecretRefused"))
    said = followed.said()
    assert said is not None
    assert "s3cret" not in said["message"]
    assert (followed.fleet.held(), followed.fleet.data("root:a")) == ({}, {"a": "shop"})


def test_an_address_inside_is_for_trusted_workspaces(followed: Followed) -> None:
    followed.give()
    followed.source(B)
    followed.until(lambda: followed.says("AddressRefused", "root:b"))
    said = followed.said("root:b")
    assert said is not None
    assert "treeplane up --trust-sources root:b" in said["message"]
    assert followed.fleet.data("root:b") == {"a": "b"}


def test_one_that_hangs_delays_no_other(followed: Followed) -> None:
    def hangs(asked: GitAsked) -> bool:
        return asked.repository == "slow.git" and asked.ended.wait(60)

    followed.git.spoil = hangs
    followed.give()
    kid = f"{A}/kid"
    said = sourcing(followed.git.url("slow.git"), secretRef={"name": SECRET})
    followed.fleet.commit({f"{kid}/workspace.yaml": said})
    followed.source()
    followed.until(lambda: followed.fleet.data("root:a") == {"a": "shop"})
    assert not followed.fleet.record("root:a:kid").served


def test_the_fleets_own_repository_is_known_by_its_addresses(followed: Followed) -> None:
    assert followed.sourcing.remotes.fleet == ("https://fleet.example.org/git/fleet.git",)


def test_a_source_that_is_gone_on_from_another_repository(followed: Followed) -> None:
    """Held for what the new one has, it is served from the former, which stays although nobody looks at it."""
    followed.give()
    other = FleetRepo(followed.git.folder / "other.git")
    other.commit({"deploy/app.yaml": "broken: [\n"})
    followed.source()
    followed.until(lambda: followed.says("Followed"))
    followed.source(name="other.git")
    followed.until(lambda: "broken" in str(followed.fleet.held()) or "app.yaml" in str(followed.fleet.held()))
    assert followed.fleet.data("root:a") == {"a": "shop"}
    former = followed.fleet.record("root:a").source["commit"].partition(".")[0]
    sources = followed.fleet.mirror.repositories.sources
    assert sources is not None
    assert former in sources.names()
    other.commit({"deploy/app.yaml": configmap(a="other")})
    followed.until(lambda: followed.fleet.data("root:a") == {"a": "other"})


def both(said: str) -> dict[str, str]:
    return {"deploy/app.yaml": configmap(a=said), "deploy/more.yaml": configmap("more", a=said)}


def of_one_commit(followed: Followed) -> tuple[str, str]:
    """The commit that objects of root:a say to be of, and their text."""
    found = [followed.fleet.get("root:a", "configmaps", name, "default") for name in ("app", "more")]
    [said] = {(each["metadata"]["annotations"]["treeplane.dev/source-commit"], each["data"]["a"]) for each in found}
    return said[0].partition(".")[2], said[1]


def test_a_branch_that_is_forced_elsewhere_while_it_is_judged(followed: Followed) -> None:
    """What is judged is one commit, whole, though what is here moves on meanwhile; the next look finds the other."""
    followed.give()
    followed.shop.commit(both("one"))
    followed.source()
    followed.until(lambda: followed.says("Followed") and followed.fleet.data("root:a") == {"a": "one"})
    one = followed.shop.head
    asked, forced = followed.sourcing.remotes.head, list[str]()
    follower = followed.sourcing._follower
    assert follower is not None

    def head(name: str, branch: str) -> str:
        found = asked(name, branch)
        if found == two and not forced:
            forced.append(followed.shop.commit(both("three"), parent=one))
            ends = time.monotonic() + _LONG
            while time.monotonic() < ends:
                if follower.found(name).commit == forced[0]:
                    return found
                followed.rung.wait(0.05)
                followed.rung.clear()
            pytest.fail("it is not looked at while it is judged")
        return found

    followed.fleet.loader.steppers.remotes = replace(followed.sourcing.remotes, head=head)
    two = followed.shop.commit(both("two"))
    followed.until(lambda: bool(forced) and of_one_commit(followed) == (two, "two"))
    followed.until(lambda: "was rewritten" in str(followed.fleet.held()))
    assert of_one_commit(followed) == (two, "two")
    followed.shop.reset(two)
    followed.until(lambda: followed.fleet.held() == {})
    assert of_one_commit(followed) == (two, "two")


def test_the_same_url_with_anothers_repository_behind_it(followed: Followed) -> None:
    """Of two looks the second finds another history: it is held, until what was is there again."""
    followed.give()
    followed.shop.commit(both("mine"))
    followed.source()
    followed.until(lambda: followed.says("Followed") and followed.fleet.data("root:a") == {"a": "mine"})
    mine = followed.shop.head
    other = FleetRepo(followed.git.folder / "other.git")
    other.commit(both("another's"))
    followed.shop.path.rename(followed.git.folder / "former.git")
    other.path.rename(followed.shop.path)
    followed.until(lambda: "was rewritten" in str(followed.fleet.held()))
    assert of_one_commit(followed) == (mine, "mine")
    followed.shop.path.rename(other.path)
    (followed.git.folder / "former.git").rename(followed.shop.path)
    followed.until(lambda: followed.fleet.held() == {})
    assert of_one_commit(followed) == (mine, "mine")


K = {"deploy/k/kustomization.yaml": "resources: [x.yaml]\n", "deploy/k/x.yaml": configmap("x", v="1")}


@pytest.fixture
def rendering(tmp_path: Path) -> Iterator[tuple[Followed, FakeRenders]]:
    """root:a renders `deploy/k` of shop.git, root:b comes from other.git."""
    renders = FakeRenders()
    made = Followed(tmp_path, ("root",), renders)
    other = FleetRepo(tmp_path / "remotes" / "other.git")
    other.commit({"deploy/app.yaml": configmap(a="other")})
    made.shop.commit(K)
    made.give()
    made.source()
    made.source(B, "other.git")
    made.until(lambda: made.fleet.data("root:a", "x") == {"v": "1"} and made.fleet.data("root:b") == {"a": "other"})
    yield made, renders
    renders.go_on()
    made.close()


def test_nobody_waits_for_what_a_tenant_renders(rendering: tuple[Followed, FakeRenders], tmp_path: Path) -> None:
    """Neither another tenant, nor the fleet, nor what is served of his own workspace."""
    followed, renders = rendering
    fleet, other = followed.fleet, FleetRepo(tmp_path / "remotes" / "other.git")
    renders.slow = {"deploy/k"}
    followed.shop.commit({"deploy/k/x.yaml": configmap("x", v="2")})
    other.commit({"deploy/app.yaml": configmap(a="new")})
    followed.until(lambda: fleet.data("root:b") == {"a": "new"} and len(renders.asked) == 1)
    fleet.commit({f"{A}/workspace.yaml": fleet_says(fleet, "labels: {x: z}")})
    assert fleet.held() == {}
    assert fleet.workspace("root:a")["metadata"]["labels"]["x"] == "z"
    assert (fleet.held(), fleet.data("root:a", "x")) == ({}, {"v": "1"})
    renders.go_on()
    followed.until(lambda: fleet.data("root:a", "x") == {"v": "2"})


def fleet_says(fleet: LoadedFleet, metadata: str) -> str:
    text = fleet.repo.files(fleet.repo.head)[f"{A}/workspace.yaml"]
    assert text is not None
    return text.replace("spec:", f"metadata: {{{metadata}}}\nspec:")


def test_another_directory_of_it_is_served_once_it_is_rendered(rendering: tuple[Followed, FakeRenders]) -> None:
    followed, renders = rendering
    fleet = followed.fleet
    followed.shop.commit({"prod/kustomization.yaml": "resources: [y.yaml]\n", "prod/y.yaml": configmap("y", v="1")})
    followed.until(lambda: fleet.record("root:a").source["commit"].endswith(followed.shop.head))
    renders.slow = {"prod"}
    text = fleet.repo.files(fleet.repo.head)[f"{A}/workspace.yaml"]
    assert text is not None
    fleet.commit({f"{A}/workspace.yaml": text.replace('"deploy"', '"prod"')})
    assert "what programs make of it is not known yet" in str(fleet.held())
    assert fleet.data("root:a", "x") == {"v": "1"}
    renders.go_on()
    followed.until(lambda: fleet.data("root:a", "y") == {"v": "1"})
    assert (fleet.held(), fleet.data("root:a", "x")) == ({}, None)


def test_what_failed_for_now_is_tried_again(rendering: tuple[Followed, FakeRenders]) -> None:
    followed, renders = rendering
    fleet = followed.fleet
    renders.fails = {"deploy/k"}
    followed.shop.commit({"deploy/k/x.yaml": configmap("x", v="2")})
    followed.until(lambda: "there is no program here" in str(fleet.held()))
    assert (fleet.data("root:a", "x"), feeds.late(fleet.store)) == ({"v": "1"}, {"root:a"})
    renders.fails.clear()
    followed.sourcing.render_again({"root:a"})
    followed.until(lambda: fleet.data("root:a", "x") == {"v": "2"})
    assert (fleet.held(), feeds.late(fleet.store)) == ({}, set())


def test_of_what_is_served_a_start_reads_nothing(
    rendering: tuple[Followed, FakeRenders], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed, _ = rendering
    followed.sourcing.close()

    def reads(*_: Any) -> None:
        pytest.fail("a tree was opened")

    monkeypatch.setattr(Sources, "sourced", reads)
    followed.sourcing = followed.follower(FakeRenders())
    followed.sourcing.start()
    head = followed.shop.head
    name = followed.fleet.record("root:a").source["commit"].partition(".")[0]
    followed.until(lambda: followed.sourcing.remotes.head(name, "main") == head)


KIDS = {
    f"deploy/{name}/{file}": text
    for name in ("one", "two")
    for file, text in {
        "workspace.yaml": "",
        "k/kustomization.yaml": "resources: [x.yaml]\n",
        "k/x.yaml": configmap("x", v="1"),
    }.items()
}


@pytest.fixture
def inheriting(rendering: tuple[Followed, FakeRenders]) -> tuple[Followed, FakeRenders]:
    """The same, with workspaces below root:a that render something, too."""
    followed, _ = rendering
    followed.shop.commit({**KIDS})
    paths = ("root:a:one", "root:a:two")
    followed.until(lambda: paths_of(followed) >= {*paths} and all(x_of(followed, path) == "1" for path in paths))
    return rendering


def paths_of(followed: Followed) -> set[str]:
    return followed.fleet.paths()


def x_of(followed: Followed, path: str) -> str:
    return (followed.fleet.data(path, "x") or {}).get("v", "")


def test_a_head_counts_once_what_is_below_is_rendered_too(
    inheriting: tuple[Followed, FakeRenders], tmp_path: Path
) -> None:
    """And nobody waits for it, nor is held meanwhile."""
    followed, renders = inheriting
    fleet, other = followed.fleet, FleetRepo(tmp_path / "remotes" / "other.git")
    renders.slow = {"deploy/two/k"}
    followed.shop.commit(
        {f"deploy/{name}/k/x.yaml": configmap("x", v="2") for name in ("one", "two")} | {"deploy/app.yaml": None}
    )
    other.commit({"deploy/app.yaml": configmap(a="new")})
    followed.until(lambda: fleet.data("root:b") == {"a": "new"} and renders.asked.count("deploy/one/k") == 2)
    assert (fleet.held(), x_of(followed, "root:a:one"), fleet.data("root:a")) == ({}, "1", {"a": "shop"})
    renders.go_on()
    followed.until(lambda: x_of(followed, "root:a:one") == x_of(followed, "root:a:two") == "2")
    assert (fleet.held(), fleet.data("root:a")) == ({}, None)


def test_what_failed_for_now_below_is_tried_again(inheriting: tuple[Followed, FakeRenders]) -> None:
    followed, renders = inheriting
    fleet = followed.fleet
    renders.fails = {"deploy/two/k"}
    followed.shop.commit({f"deploy/{name}/k/x.yaml": configmap("x", v="2") for name in ("one", "two")})
    followed.until(lambda: "there is no program here" in str(fleet.held()))
    assert [*fleet.held()] == ["root:a:two"]
    assert (x_of(followed, "root:a:one"), x_of(followed, "root:a:two")) == ("2", "1")
    renders.fails.clear()
    followed.sourcing.render_again(feeds.late(fleet.store))
    followed.until(lambda: x_of(followed, "root:a:two") == "2")
    assert (fleet.held(), feeds.late(fleet.store)) == ({}, set())


def test_what_is_lost_of_what_was_rendered_is_waited_for_by_who_needs_it(
    inheriting: tuple[Followed, FakeRenders],
) -> None:
    followed, renders = inheriting
    fleet = followed.fleet
    renders.forget()
    renders.slow = {"deploy/two/k"}
    fleet.loader.look_again(["root:a:two"])
    assert "what programs make of it is not known yet" in str(fleet.held())
    assert x_of(followed, "root:a:two") == "1"
    renders.go_on()
    followed.until(lambda: fleet.held() == {})


def test_who_has_nothing_new_to_render_is_not_begun(
    inheriting: tuple[Followed, FakeRenders], monkeypatch: pytest.MonkeyPatch
) -> None:
    followed, renders = inheriting
    asked = [*renders.asked]
    seen = list[str]()
    is_at_hand = renders.is_at_hand

    def noting(request: RenderRequest) -> bool:
        seen.append(request.directory)
        return is_at_hand(request)

    monkeypatch.setattr(renders, "is_at_hand", noting)
    followed.shop.commit({"deploy/one/k/x.yaml": configmap("x", v="2")})
    followed.until(lambda: x_of(followed, "root:a:one") == "2")
    assert renders.asked == [*asked, "deploy/one/k"]
    assert "deploy/two/k" not in seen


def looked(followed: Followed, path: str = "root:a") -> Looked | None:
    return looks.looked(followed.fleet.store, followed.fleet.record(path).cluster)


def test_who_asks_for_a_look_is_told_what_it_found(followed: Followed) -> None:
    """At once, although it is not due for an hour; and again where nothing is new."""
    followed.sourcing.close()
    followed.settings = replace(followed.settings, source_interval=3600.0)
    followed.sourcing = followed.follower(NOWHERE)
    followed.sourcing.lend(followed.fleet.loader)
    followed.sourcing.start()
    followed.give()
    followed.source()
    followed.until(lambda: followed.says("Followed"))
    assert looked(followed) is None
    for content in ("new", "new", "newer"):
        before, head = time.time(), followed.shop.commit({"deploy/app.yaml": configmap(a=content)})
        followed.sourcing.ask("root:a")
        followed.until(lambda before=before: (found := looked(followed)) is not None and found.began >= before)
        found = looked(followed)
        assert found is not None
        assert (found.head, found.served, found.wrong) == (head, head, "")
        assert followed.fleet.data("root:a") == {"a": content}


def test_who_asks_for_a_look_is_told_why_there_is_none(followed: Followed) -> None:
    followed.give()
    followed.source()
    followed.until(lambda: followed.says("Followed"))

    def fails(asked: GitAsked) -> bool:
        asked.reply(b"", 500)
        return True

    followed.git.spoil = fails
    followed.sourcing.ask("root:a")
    followed.until(lambda: looked(followed) is not None)
    found = looked(followed)
    assert found is not None
    assert found.wrong.startswith("Failing: ")


def test_who_asks_for_what_is_no_source_leaves_nothing(followed: Followed) -> None:
    for path in ("root", "root:a", "root:none", "no path at all"):
        followed.sourcing.ask(path)
    followed.sourcing.serve(followed.fleet.loader.look_again)
    assert followed.sourcing.wait(5.0) == 5.0, "nobody is waited for"
    assert list(followed.fleet.store.scan_rows(Table.LOOKS)) == []
