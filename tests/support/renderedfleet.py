"""A fleet of which some is rendered, of a base, and of what is shared; and what may become of all of that."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap

from reconciler.layout.source import manifests
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import feeds
from reconciler.loading.sources import Sources

SHARING = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases, parts]}}}}\n"
PLACES = {"root:a": f"{A}/k", "root:b": f"{B}/k"}
RESOURCES = (
    "x.yaml",
    "x.yaml, ../base",
    "../../../../bases/web",
    "x.yaml, ../../../../bases/web",
    "../../../../bases/none",
    "../../../../README",
    "",
)
EDITS = (
    "x",
    "x",
    "prefix",
    "resources",
    "resources",
    "base",
    "shared",
    "part",
    "plain",
    "notes",
    "below",
    "share",
    "gone",
)
WORLD = ("away", "back", "version", "restart", "publish", "lose")
Objects = dict[str, str]
"""Data by name."""


@dataclass
class RenderedFleet:
    """The fleet that runs. `said`: prefix and resources, by workspace."""

    folder: Path
    made: list[LoadedFleet] = field(default_factory=list)
    renders: FakeRenders = field(default_factory=FakeRenders)
    said: dict[str, tuple[str, str]] = field(default_factory=lambda: dict.fromkeys(PLACES, ("k-", "x.yaml")))
    sharing: bool = True

    @property
    def fleet(self) -> LoadedFleet:
        return self.made[-1]

    def begin(self) -> None:
        self.made.append(LoadedFleet(self.folder / "fleet", renders=self.renders))
        files = {f"{place}/x.yaml": configmap("x", v="0") for place in PLACES.values()}
        files |= {f"{top}/base/kustomization.yaml": "resources: [y.yaml]\n" for top in (A, B)}
        files |= {f"{top}/base/y.yaml": configmap("y", v="0") for top in (A, B)}
        files |= {f"{top}/.treeplaneignore": "/base\n" for top in (A, B)}
        files |= {
            "treeplane.yaml": SHARING,
            "README": "",
            "bases/web/kustomization.yaml": "resources: [s.yaml, ../../parts]\n",
            "bases/web/s.yaml": configmap("s", v="0"),
            "parts/kustomization.yaml": "resources: [p.yaml]\n",
            "parts/p.yaml": configmap("p", v="0"),
        }
        self.fleet.begin({**files, **{f"{PLACES[path]}/kustomization.yaml": self._text(path) for path in PLACES}})
        self.fleet.publish()

    def happen(self, name: str, number: int, path: str) -> None:
        place, fleet = PLACES[path], self.fleet
        top = place.removesuffix("/k")
        prefix, resources = self.said[path]
        if name in ("prefix", "resources"):
            self.said[path] = (f"k{number}-", resources) if name == "prefix" else (prefix, RESOURCES[number])
            fleet.commit({f"{place}/kustomization.yaml": self._text(path)})
        elif name == "gone":
            there = f"{place}/kustomization.yaml" in fleet.repo.files(fleet.repo.head)
            fleet.commit({f"{place}/kustomization.yaml": None if there else self._text(path)})
        elif name == "x":
            fleet.commit({f"{place}/x.yaml": configmap("x", v=str(number))})
        elif name == "base":
            fleet.commit({f"{top}/base/y.yaml": configmap("y", v=str(number))})
        elif name == "shared":
            fleet.commit({"bases/web/s.yaml": configmap("s", v=str(number))})
        elif name == "part":
            fleet.commit({"parts/p.yaml": configmap("p", v=str(number)) if number else None})
        elif name == "plain":
            fleet.commit({f"{top}/z.yaml": configmap("z", v=str(number))})
        elif name == "notes":
            fleet.commit({f"{place}/notes.txt": str(number)})
        elif name == "below":
            there = f"{place}/web/workspace.yaml" in fleet.repo.files(fleet.repo.head)
            fleet.commit({f"{place}/web/workspace.yaml": None if there else ""})
        elif name == "share":
            self.sharing = not self.sharing
            fleet.commit({"treeplane.yaml": SHARING if self.sharing else TREEPLANE_YAML})
        else:
            self._befall(name, number)

    def _befall(self, name: str, number: int) -> None:
        if name == "away":
            self.renders.away = True
        elif name == "back":
            self._back()
        elif name == "version":
            self.renders.stamp = str(number)
            self._start()
        elif name == "restart":
            self._start()
        elif name == "publish":
            self.fleet.publish()
        else:
            self._back()
            self.fleet.publish()
            self.made.append(self.recovered())

    def _start(self) -> None:
        self.fleet.loader = self.fleet.new_loader()
        self.fleet.load()
        settle(self.fleet)

    def _back(self) -> None:
        self.renders.away = False
        settle(self.fleet)

    def recovered(self) -> LoadedFleet:
        first = self.made[0]
        folder = self.folder / f"n{len(self.made)}"
        new = LoadedFleet(folder, repo=first.repo, keys=first.keys, renders=self.renders)
        new.load(new.recorded())
        settle(new)
        return new

    def _text(self, path: str) -> str:
        prefix, resources = self.said[path]
        return f"namePrefix: {prefix}\nresources: [{resources}]\n"

    def served(self, path: str) -> Objects:
        found = self.fleet.store.scan("configmaps", self.fleet.record(path).cluster, "default").records
        names = [record.key.name for record in found if record.key.name != "kube-root-ca.crt"]
        return {name: str(self.fleet.get(path, "configmaps", name).get("data")) for name in names}

    def declared(self, path: str) -> Objects | None:
        """What comes of the files of the head, where there is a program; None where something is wrong."""
        repo = self.fleet.repo.repo
        tree = WorkspaceTree(repo, repo.commit(self.fleet.repo.head).tree)
        place = tree.find(path)
        assert place is not None
        source = Sources(FakeRenders(self.renders.stamp)).of(tree, place)
        found = [*manifests(source)]
        wrong = any(piece.problems for piece in source.pieces()) or len({m.name for m in found}) < len(found)
        return None if wrong else {m.name: str(m.value.get("data")) for m in found}

    def check(self, before: dict[str, Objects] | None) -> None:
        held = self.fleet.held()
        for path in PLACES:
            declared, served = self.declared(path), self.served(path)
            if path in held:
                assert before is None or served == before[path]
                assert declared is None or self.renders.away
            elif not self.renders.away:
                assert served == declared
            else:
                assert before is None or served in (before[path], declared)


def settle(fleet: LoadedFleet) -> None:
    """As every start does, and the server while it runs."""
    fleet.recheck(feeds.late(fleet.store) | feeds.others_by(fleet.store, fleet.renders.fingerprint))
