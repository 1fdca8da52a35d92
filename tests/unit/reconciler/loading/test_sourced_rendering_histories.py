"""Directories of tenants' repositories that are rendered, apart from who judges, of the workspace with the source and
of those below it there, among what is pushed, programs that fail or change, losses and restarts: what is served is what
comes of its commit, and a recovery finds the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.fakerenders import FakeRenders
from support.loadedfleet import configmap
from support.recoveries import assert_same
from support.sourcedfleet import SourcedFleet
from support.sourcedhistory import Sourcing, agreed, child

from apiserver.model import commits
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.source import manifests
from reconciler.loading import feeds
from reconciler.loading.sources import Sources

WORDS = (
    *("render", "render", "x", "x", "base", "outside", "plain", "nothing", "fails", "works", "version"),
    *("push", "mend", "break", "back", "forth", "rewrite", "let", "permit", "swap", "path", "home", "source", "fleet"),
    *("away", "here", "follow", "publish", "restart", "die", "lose", "allow"),
    *("child", "kids", "kids", "kid x", "kid base", "base x", "kid fails", "kid plain", "below", "remove", "orphan"),
)
HISTORIES = st.lists(st.tuples(st.sampled_from(WORDS), st.integers(0, 47), st.booleans()), min_size=1, max_size=12)
History = list[tuple[str, int, bool]]
ENTRY = "deploy/k/kustomization.yaml"


class ApartFleet(SourcedFleet):
    is_apart = True


class Rendering(Sourcing):
    """A fleet with its tenants, and the programs that all its servers have."""

    def __init__(self, folder: Path) -> None:
        self.renders = FakeRenders()
        super().__init__(folder)

    def make(self, folder: Path, *more: Any) -> SourcedFleet:
        return ApartFleet(folder, self.tenants, *more, renders=self.renders)

    def happen(self, word: str, number: int, *, load: bool) -> None:
        if word == "fails":
            self.renders.away = True
        elif word == "works":
            self.works()
        elif word == "version":
            self.renders.stamp = str(1 + number % 3)
            self.again(self.fleet)
        else:
            super().happen(word, number, load=load)

    def works(self) -> None:
        self.renders.away = False
        self.again(self.fleet)

    def again(self, fleet: SourcedFleet) -> None:
        """As every start does, and the server while it runs."""
        fleet.loader = fleet.new_loader()
        self.follow(fleet)
        fleet.loader.look_again(feeds.late(fleet.store) | feeds.others_by(fleet.store, fleet.renders.fingerprint))
        self.follow(fleet)

    def at_the_tenants(self, word: str, url: str, number: int) -> None:
        said: dict[str, dict[str, str | None]] = {
            "render": {ENTRY: f"namePrefix: k{number % 3}-\nresources: [x.yaml]\n", "deploy/k/x.yaml": configmap("x")},
            "x": {"deploy/k/x.yaml": configmap("x", v=str(number))},
            "base": {
                ENTRY: "resources: [x.yaml, ../base]\n",
                "deploy/.treeplaneignore": "/base\n",
                "deploy/base/kustomization.yaml": "resources: [y.yaml]\n",
                "deploy/base/y.yaml": configmap("y", v=str(number)),
            },
            "outside": {ENTRY: "resources: [x.yaml, ../../prod/app.yaml]\n"},
            "plain": {"deploy/k": None, "deploy/base": None},
            "nothing": {ENTRY: "resources: []\n"},
            **self.of_a_child(f"deploy/{child(number)}", number),
        }
        if word in said:
            self.push(url, said[word])
        else:
            super().at_the_tenants(word, url, number)

    def of_a_child(self, at: str, number: int) -> dict[str, dict[str, str | None]]:
        """What happens to a workspace below the path."""
        up, k = "../" * at.count("/"), f"{at}/k"
        base = {
            "deploy/.treeplaneignore": "/base\n",
            "deploy/base/kustomization.yaml": "resources: [y.yaml]\n",
            "deploy/base/y.yaml": configmap("y", v=str(number)),
        }
        rendered = {f"{at}/workspace.yaml": "", f"{k}/x.yaml": configmap("x", v=str(number))}
        return {
            "kids": {**rendered, f"{k}/kustomization.yaml": f"namePrefix: c{number % 2}-\nresources: [x.yaml]\n"},
            "kid x": {f"{k}/x.yaml": configmap("x", v=str(number))},
            "kid base": {**rendered, **base, f"{k}/kustomization.yaml": f"resources: [x.yaml, {up}../base]\n"},
            "base x": {"deploy/base/y.yaml": configmap("y", v=str(number))},
            "kid fails": {f"{k}/kustomization.yaml": "resources: [none.yaml]\n"},
            "kid plain": {k: None},
            "below": {f"{k}/in/workspace.yaml": ""},
        }

    def look(self, fleet: SourcedFleet) -> None:
        super().look(fleet)
        for record in fleet.records():
            made = feeds.noted(fleet.store, record.cluster)
            here = made is None or made.by == fleet.renders.fingerprint
            if record.source and record.served and not (record.errors or record.leaves) and here:
                found = fleet.store.scan("configmaps", record.cluster, "default").records
                names = {each.key.name for each in found} - {"kube-root-ca.crt"}
                assert names == self.declared(record.source), record.path

    def declared(self, source: dict[str, str]) -> set[str]:
        """Names of the ConfigMaps that a commit of a source says, rendered ones among them."""
        repo, commit = self.tenants.at(source["repository"]).repo, commits.parse(source["commit"])
        here = ContentTree(repo, repo.commit(commit.id).tree, path=source.get("border"))
        here.claims |= self.fleet.loader.sources.directories_in(commit.repository)
        place = here.content("root:a", source.get("path", ""))
        assert place is not None
        found = manifests(Sources(FakeRenders(self.renders.stamp)).of(here, place))
        return {each.name for each in found if each.gvk.kind == "ConfigMap"}


@pytest.fixture
def begin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made: list[Rendering] = []

    def new() -> Rendering:
        for each in made:
            each.close()
        made.clear()
        made.append(Rendering(tmp_path_factory.mktemp("rendered")))
        return made[-1]

    yield new
    for each in made:
        each.close()


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
@given(history=HISTORIES)
@example(history=[("render", 0, True), ("x", 0, True), ("lose", 0, True), ("outside", 0, True)])
@example(history=[("render", 0, True), ("fails", 0, False), ("x", 2, True), ("works", 0, True), ("version", 1, True)])
@example(history=[("base", 0, True), ("base", 2, True), ("fails", 0, False), ("lose", 0, True), ("plain", 0, True)])
@example(
    history=[("kids", 0, True), ("kid base", 1, True), ("base x", 2, True), ("lose", 0, True), ("version", 1, True)]
)
@example(history=[("kids", 2, True), ("fails", 0, False), ("kid x", 2, True), ("works", 0, True), ("below", 2, True)])
@example(history=[("kid base", 4, True), ("path", 0, True), ("lose", 0, True), ("path", 2, True), ("allow", 0, True)])
@example(history=[("version", 26, False), ("kid base", 0, False), ("render", 0, True), ("render", 0, False)])
@example(history=[("kids", 0, False), ("die", 2, False), ("kid x", 0, False), ("die", 4, False), ("restart", 0, True)])
@example(history=[("child", 14, True), ("child", 0, False)])
@example(history=[("kids", 14, True), ("kids", 0, True), ("lose", 0, False), ("lose", 0, True)])
def test_what_is_served_is_what_comes_of_its_commit(begin: Any, history: History) -> None:
    happening = begin()
    for word, number, load in history:
        happening.happen(word, number, load=load)
    happening.tenants.away.clear()
    happening.works()
    old = happening.fleet
    old.publish()
    if made_otherwise(old):
        return
    new = happening.another()
    new.by_id = True
    new.load(new.recorded())
    happening.again(new)
    happening.follow(old)
    assert agreed(new) == agreed(old)
    assert rows(new) == rows(old)
    if "root:b" not in new.paths() or not new.find("root:b", "apibindings.apis.kcp.io", "widgets"):
        # Who takes something of a workspace that comes back later was bound to nothing for a while.
        assert_same(new, old)
        assert new.writer().flush() is None


def made_otherwise(fleet: SourcedFleet) -> bool:
    """Whether what is served of a workspace that is held was made by programs that are others now."""
    found = (feeds.noted(fleet.store, record.cluster) for record in fleet.records() if record.errors)
    return any(each is not None and each.by != fleet.renders.fingerprint for each in found)


def rows(fleet: SourcedFleet) -> dict[str, feeds.Fed | None]:
    records = (record for record in fleet.records() if not record.errors)
    return {record.path: feeds.noted(fleet.store, record.cluster) for record in records}
