"""What happens to a fleet and its tenants' repositories, word by word, for tests over generated histories."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from support.loadedfleet import A, B, configmap
from support.recoveries import text
from support.sourcedfleet import OTHER, SHOP, SourcedFleet, TenantRepos, sourcing
from support.widgets import binding, export, schema, widget

from apiserver.model import commits
from reconciler.layout.contenttree import ContentTree
from reconciler.loading.sourced import GRAFTED

URLS = (SHOP, OTHER)
FILES = ("workspace.yaml", "app.yaml")
MANY = "---\n".join(configmap(f"m{number}") for number in range(12))


class Sourcing:
    """A fleet with its tenants, and what happens to them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tenants = folder, TenantRepos(folder / "tenants")
        self.fleet = self.make(folder / "fleet")
        self.made = [self.fleet]
        self.were: dict[str, set[str]] = {url: set() for url in URLS}
        self.left: dict[str, str] = {}
        for url in URLS:
            self.push(url, {"deploy/app.yaml": configmap(a=url), "prod/app.yaml": configmap(a="prod")})
            self.push(url, {"deploy/schema.json": schema(), "deploy/export.json": export()})
        self.fleet.begin({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
        self.fleet.source()

    def make(self, folder: Path, *more: Any) -> SourcedFleet:
        return SourcedFleet(folder, self.tenants, *more)

    def another(self) -> SourcedFleet:
        self.made.append(self.make(self.folder / f"n{len(self.made)}", self.fleet.repo, self.fleet.keys))
        return self.made[-1]

    def close(self) -> None:
        for each in self.made:
            each.close()

    # -- what happens

    def happen(self, word: str, number: int, *, load: bool) -> None:
        fleet, url = self.fleet, URLS[number % 2]
        if word == "publish":
            fleet.publish()
        elif word == "restart":
            fleet.loader = fleet.new_loader()
        elif word == "lose":
            self.lose()
        elif word == "die":
            self.die(number % 9)
        elif word == "away":
            self.tenants.away.add(url)
        elif word == "here":
            self.tenants.away.clear()
        elif word == "unseen":
            self.look_again()
        elif word == "follow":
            self.follow(fleet)
        elif word == "allow":
            self.follow(fleet)
            with suppress(AssertionError):
                fleet.allow()
        elif files := self.in_the_fleet(word, number):
            fleet.repo.commit(files)
        else:
            self.at_the_tenants(word, url, number)
        if load:
            self.follow(fleet)

    def look_again(self) -> None:
        """What was fetched is there, and no branch was looked at yet: as it is right behind a recovery."""
        self.fleet.heads.clear()
        self.fleet.judged.clear()
        self.fleet.load()
        self.fleet.loader.look_again({"root:a", "root:b"} & {*self.fleet.paths()})

    def in_the_fleet(self, word: str, number: int) -> dict[str, str | None]:
        at, more = (A, B)[number % 2], {"binding.json": None, "w.json": None}
        away: dict[str, str | None] = {f"{B}/{name}": None for name in more} if at == B else {}
        said = {
            "swap": {f"{at}/app.yaml": None, f"{at}/workspace.yaml": sourcing(URLS[number // 2 % 2]), **away},
            "path": {
                f"{at}/app.yaml": None,
                f"{at}/workspace.yaml": sourcing(path=("prod", "")[number // 2 % 2]),
                **away,
            },
            "source": {f"{at}/app.yaml": None, f"{at}/extra.yaml": None, f"{at}/workspace.yaml": sourcing(), **away},
            "home": {f"{at}/workspace.yaml": "", f"{at}/app.yaml": configmap(home=str(number))},
            "beside": {f"{at}/extra.yaml": configmap("extra")},
            "fleet": {"workspaces/root/app.yaml": configmap(v=str(number))},
            "kid": {f"{at}/kid/workspace.yaml": "", f"{at}/kid/k.yaml": configmap("k", v=str(number))},
            "twin": {f"{at}/own/{child(number)}/{name}": configmap() * (name == "app.yaml") for name in FILES},
            "drop": {at: None},
            "bind": {f"{B}/workspace.yaml": "", f"{B}/binding.json": binding("root:a")},
            "use": {f"{B}/workspace.yaml": "", f"{B}/w.json": widget(size=number)},
        }
        return dict(said.get(word, {}))

    def at_the_tenants(self, word: str, url: str, number: int) -> None:
        repo = self.tenants.at(url)
        if word == "back":
            self.left[url] = repo.head
            repo.reset(repo.repo.commit(repo.head).parents[0] if repo.repo.commit(repo.head).parents else repo.head)
        elif word == "forth" and url in self.left:
            repo.reset(self.left[url])
        elif word == "rewrite":
            self.push(url, {"deploy/app.yaml": configmap(v=str(number))}, parent=repo.commits[0])
        elif word in ("let", "permit"):
            record = self.fleet.record("root:a") if "root:a" in self.fleet.paths() else None
            errors = " ".join(" ".join(each.errors) for each in self.fleet.records() if each.path.startswith("root:a"))
            was = commits.parse(record.source.get("commit", "")).id if record is not None else ""
            digest = errors.partition("Allow-Delete: ")[2][:40]
            said = f"Allow-Rewrite: {was}\n" if word == "let" and was else f"Allow-Delete: {digest}\n" if digest else ""
            self.push(url, {}, message=f"Take it\n\n{said}")
        else:
            files: dict[str, dict[str, str | None]] = {
                "more": {"deploy/more/more.yaml": configmap("more", v=str(number))},
                "many": {"deploy/m.yaml": MANY, "deploy/app.yaml": None},
                "few": {"deploy/m.yaml": None},
                "break": {"deploy/app.yaml": "broken: [\n"},
                "empty": {"deploy": None},
                "leave": {"deploy/kid/workspace.yaml": ""},
                "child": {
                    f"deploy/{child(number)}/workspace.yaml": "",
                    f"deploy/{child(number)}/app.yaml": configmap(v=str(number)),
                },
                "spoil": {f"deploy/{child(number)}/app.yaml": "broken: [\n"},
                "remove": {f"deploy/{child(number)}": None},
                "orphan": {f"deploy/{child(number)}/workspace.yaml": None},
                "deny": {f"deploy/{child(number)}/workspace.yaml": sourcing()},
                "gone": {"deploy/kid": None, "deploy/more": None},
                "mend": {"deploy/app.yaml": configmap(), "deploy/schema.json": schema(), "deploy/kid": None},
                "export": {
                    "deploy/schema.json": schema(f"v{number % 2}"),
                    "deploy/export.json": export(f"v{number % 2}"),
                },
                "withdraw": {"deploy/export.json": None},
            }
            self.push(url, files.get(word, {"deploy/app.yaml": configmap(v=str(number))}))

    def push(self, url: str, files: dict[str, str | None], **more: Any) -> None:
        self.tenants.push(files, url, **more)

    def lose(self) -> None:
        """All that is here, perhaps in the middle of a load; what is recorded of that brings it back."""
        self.fleet.publish()
        new = self.another()
        new.by_id = True
        new.load(new.recorded())
        self.fleet = new

    def die(self, writes: int) -> None:
        """A load that is cut off."""
        fleet, write, left = self.fleet, self.fleet.store.write, [writes]

        def dying(*ops: Any) -> Any:
            if not left[0]:
                raise OSError("killed")
            left[0] -= 1
            return write(*ops)

        fleet.store.write = dying  # type: ignore[method-assign]
        with suppress(OSError):
            self.follow(fleet)
        fleet.store.write = write  # type: ignore[method-assign]
        fleet.loader = fleet.new_loader()

    def follow(self, fleet: SourcedFleet) -> None:
        """As the holder does, look by look: what comes back may want another source then."""
        fleet.load()
        for _ in range(5):
            if not fleet.follow():
                break
        assert fleet.follow() == set()
        self.look(fleet)

    def look(self, fleet: SourcedFleet) -> None:
        """What is served has the ConfigMap that its commit has, and every row is a workspace's."""
        sources = {record.path: record.source for record in fleet.records() if record.source and record.served}
        for path, source in sources.items():
            if not fleet.record(path).leaves:
                assert fleet.data(path) == self.said(source), path
        fleet.listed()

    def said(self, source: dict[str, str]) -> dict[str, str] | None:
        repo = self.tenants.at(source["repository"]).repo
        here = ContentTree(repo, repo.commit(commits.parse(source["commit"]).id).tree)
        here.claims |= self.fleet.loader.sources.directories_in(commits.parse(source["commit"]).repository)
        place = here.content("root:a", source.get("path", ""))
        assert place is not None
        entry = next((each for path, each in here.files(place) if path.endswith("app.yaml")), None)
        text = repo.blob(entry.id).decode() if entry is not None else ""
        lines = text.partition("data:\n")[2].splitlines()
        return {line.split(":")[0].strip(): line.split("'")[1] for line in lines} or None


def child(number: int) -> str:
    """The directory of a workspace in a tenant's repository."""
    return ("one", "group/two", "one/three")[number % 3]


def agreed(fleet: SourcedFleet) -> Any:
    """What is the same of a server that waited for what was away, but for since when things are so."""
    lines = [line for line in text(fleet) if '"lastTransitionTime"' not in line]
    return lines, sources(fleet), {r.path: (r.served, r.commit, r.errors) for r in fleet.records()}


def sources(fleet: SourcedFleet) -> dict[str, Any]:
    found = ((r, {name: said for name, said in r.follows.items() if name != GRAFTED}) for r in fleet.records())
    return {record.path: (record.source, follows) for record, follows in found}
