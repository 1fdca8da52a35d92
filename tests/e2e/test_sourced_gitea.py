"""A real Gitea as the place of tenants' repositories: whom it lets read, what it says of those that were renamed,
hidden, emptied or removed, and what a workspace shows of all that. docs/sources.md says which fields to fill for it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.giteaserver import GiteaServer
from support.plane import Clone, Plane
from support.sourcedplane import OPTIONS, A, condition, config, said, set_out, sourcing

from apiserver.auth.pki import ensure_keys
from reconciler.repository.objects import Repository
from reconciler.repository.sourcerefs import SourceCredentials, address, source_name
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing import connection
from reconciler.sourcing.disk import SourceDisk
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.followed import FollowedSource
from reconciler.sourcing.settings import DEFAULT
from reconciler.sourcing.visit import Visit, Visited, within

PASSWORD = "a-password-of-tess"
NOBODY = SourceCredentials()


@dataclass(frozen=True)
class Forge:
    """`tess`: a token of hers, who owns what is made here."""

    server: GiteaServer
    ca: Path
    tess: str

    def make(self, name: str, **more: Any) -> None:
        said = {"name": name, "auto_init": True, "default_branch": "main", **more}
        self.server.ask(self.tess, "POST", "/user/repos", said)

    def change(self, repository: str, **more: Any) -> None:
        self.server.ask(self.tess, "PATCH", f"/repos/tess/{repository}", more)

    def remove(self, name: str) -> None:
        self.server.ask(self.tess, "DELETE", f"/repos/tess/{name}")

    def url(self, name: str) -> str:
        return f"{self.server.url}/tess/{name}"

    def work(self, name: str, folder: Path, *words: str) -> Clone:
        """A work tree from which `origin` can be pushed to."""
        folder.mkdir()
        made = Clone(folder)
        scheme, _, rest = self.url(name).partition("://")
        made.git("init", "--quiet", "--initial-branch=main")
        made.git("config", "http.sslCAInfo", str(self.ca))
        made.git("remote", "add", "origin", f"{scheme}://tess:{self.tess}@{rest}")
        made.git("fetch", "--quiet", *words, "origin")
        made.git("reset", "--quiet", "--hard", "origin/main", check=False)
        return made


@pytest.fixture(scope="module")
def forge(
    gitea_program: Path, tmp_path_factory: pytest.TempPathFactory, eventually: Callable[..., str]
) -> Iterator[Forge]:
    folder = tmp_path_factory.mktemp("forge")
    keys = ensure_keys(folder / "keys")
    (folder / "gitea").mkdir()
    server = GiteaServer(gitea_program, folder / "gitea", keys)
    try:
        server.start(eventually)
        server.user("tess", admin=True, password=PASSWORD)
        yield Forge(server, keys.ca, server.token("tess", "all"))
    finally:
        server.stop()


@dataclass
class Visitor:
    forge: Forge
    store: SourceStore
    second: bool = False

    def visit(self, name: str, credentials: SourceCredentials = NOBODY, keep: frozenset[str] = frozenset()) -> Visited:
        where, said = address(self.forge.url(name), "main"), credentials
        with_ca = SourceCredentials(said.username, said.password, said.token, self.forge.ca.read_bytes())
        source = FollowedSource(where, with_ca, trusted=True)
        disk = SourceDisk(self.store, DEFAULT.together)
        found = Visit(self.name(name), source, keep, (), self.second, within(60)).make(disk, DEFAULT)
        self.second = found.second
        return found

    def name(self, name: str) -> str:
        return source_name("cluster", self.forge.url(name))

    def here(self, name: str) -> Repository:
        found = self.store.open(self.name(name))
        assert found is not None
        return found

    def refused(self, name: str, credentials: SourceCredentials = NOBODY) -> tuple[str, str]:
        with pytest.raises(SourceFault) as raised:
            self.visit(name, credentials)
        return raised.value.reason, str(raised.value)


@pytest.fixture
def visitor(forge: Forge, tmp_path: Path) -> Visitor:
    return Visitor(forge, SourceStore(tmp_path / "sources"))


def test_who_may_read_a_private_repository(forge: Forge, visitor: Visitor) -> None:
    forge.make("private", private=True)
    reader = forge.server.token("tess", "read:repository")
    for right in (
        SourceCredentials("tess", PASSWORD),
        SourceCredentials("tess", reader),
        SourceCredentials("anybody", reader),
        SourceCredentials(token=reader),
    ):
        assert len(visitor.visit("private.git", right).head) == 40
    other = forge.server.token("tess", "read:issue")
    for wrong, words in (
        (SourceCredentials("tess", "wrong"), "answers with 401: it does not take the credentials of the Secret"),
        (SourceCredentials(token="0" * 40), "answers with 401: it does not take the credentials of the Secret"),
        (SourceCredentials("tess", other), "answers with 403: the credentials may not read the repository"),
        (NOBODY, "answers with 401: name a Secret"),
    ):
        reason, said = visitor.refused("private.git", wrong)
        assert (reason, words in said) == ("Unauthorized", True), said
        assert PASSWORD not in said and other not in said


@pytest.mark.parametrize("old", [False, True])
def test_whichever_version_of_the_protocol_it_speaks(
    forge: Forge, visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    """It speaks the first with who does not ask for the second. Both fetch what is new, and a rewritten branch."""
    asked, name = connection._Http.request, f"version{old}"
    if old:

        def request(http: Any, method: str, path: str, body: Any, heads: dict[str, str]) -> None:
            asked(http, method, path, body, {key: heads[key] for key in heads if key != "Git-Protocol"})

        monkeypatch.setattr(connection._Http, "request", request)
    forge.make(name)
    work = forge.work(name, tmp_path / "work")
    first = work.git("rev-parse", "HEAD").strip()
    assert visitor.visit(name) == Visited(first, frozenset(), not old, frozenset())
    work.write("app.yaml", "two")
    second = work.commit("Two")
    work.push("origin", "main")
    assert visitor.visit(name).head == second
    work.git("reset", "--quiet", "--hard", first)
    work.write("app.yaml", "three")
    third = work.commit("Three")
    work.push("--force", "origin", "main")
    found = visitor.visit(name)
    assert (found.head, found.left) == (third, {second})
    fresh = Visitor(forge, SourceStore(tmp_path / "fresh"))
    found = fresh.visit(name, keep=frozenset({second}))
    assert (found.head, found.refused) == (third, frozenset()), "what was served is given after a disk was lost"
    assert fresh.here(name).has(second)


def test_what_becomes_of_a_repository_is_told(forge: Forge, visitor: Visitor) -> None:
    reader = SourceCredentials("tess", forge.server.token("tess", "read:user,read:repository"))
    forge.make("former")
    head = visitor.visit("former.git").head
    assert visitor.visit("former").head == head, "with and without .git"
    forge.change("former", archived=True)
    assert visitor.visit("former.git").head == head
    forge.change("former", archived=False, name="latter")
    reason, said = visitor.refused("former.git", reader)
    assert (reason, f"is at {forge.url('latter')} by now, so name that" in said) == ("NotARepository", True), said
    assert visitor.visit("latter.git").head == head
    forge.change("latter", private=True)
    assert visitor.refused("latter.git")[0] == "Unauthorized"
    assert visitor.visit("latter.git", reader).head == head
    forge.remove("latter")
    assert visitor.refused("latter.git", reader)[0] == "NotFound"
    reason, said = visitor.refused("latter.git")
    assert (reason, "check the URL as well" in said) == ("Unauthorized", True), "it tells nobody what there is"
    forge.make("latter", auto_init=False)
    assert visitor.refused("latter.git")[0] == "BranchNotFound"
    assert visitor.here("latter.git").has(head)


def test_a_large_push_and_one_of_a_shallow_clone(forge: Forge, visitor: Visitor, tmp_path: Path) -> None:
    forge.make("large")
    work = forge.work("large", tmp_path / "work")
    (work.folder / "noise.bin").write_bytes(random.Random(1).randbytes(24 * 1024 * 1024))
    for number in range(3000):
        work.write(f"many/{number % 40}/{number}.yaml", f"number: {number}\n" * 20)
    head = work.commit("Much")
    work.push("origin", "main")
    assert visitor.visit("large.git").head == head
    shallow = forge.work("large", tmp_path / "shallow", "--depth=1")
    assert shallow.git("rev-list", "--count", "HEAD").strip() == "1"
    shallow.write("many/more.yaml", "more: more\n")
    head = shallow.commit("More")
    shallow.push("origin", "main")
    assert visitor.visit("large.git").head == head
    fresh = Visitor(forge, SourceStore(tmp_path / "fresh"))
    assert fresh.visit("large.git").head == head
    assert len(fresh.here("large.git").commit(head).parents) == 1


# -- and what is served ------------------------------------------------------------------------------------------------


def test_what_is_served_stays_whatever_becomes_of_its_repository(
    forge: Forge, plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    forge.make("shop", private=True)
    work = forge.work("shop", tmp_path / "work")

    def push(text: str, *words: str) -> str:
        work.write("deploy/said.yaml", config(text))
        made = work.commit(text)
        work.push(*words, "origin", "main")
        return made

    def told(kind: str, words: str, reason: str = "") -> None:
        def is_so() -> bool:
            found = condition(running, kind)
            return words in found.get("message", "") and reason in ("", found["reason"])

        eventually(is_so, 60, f"{kind} says {words}")

    first = push("first")
    reader = forge.server.token("tess", "write:user,read:repository")
    secret = {"username": "tess", "password": reader, "caFile": forge.ca.read_text()}
    folder, data = set_out(tmp_path, forge.url("shop.git"), **secret)
    running = plane(folder, *OPTIONS, "--workers", "1", data=data)
    eventually(lambda: said(running) == "first", 60, "a private repository is served, by a token")
    push("second")
    eventually(lambda: said(running) == "second", 30, "and what is pushed there")

    work.git("reset", "--quiet", "--hard", first)
    push("rewritten", "--force")
    told("CommitApplied", "was rewritten")
    assert said(running) == "second"
    was = condition(running, "CommitApplied")["message"].partition("Allow-Rewrite: ")[2][:40]
    work.git("commit", "--quiet", "--allow-empty", "--message", f"Take it\n\nAllow-Rewrite: {was}")
    work.push("origin", "main")
    eventually(lambda: said(running) == "rewritten", 30, "until its head says that it may be")

    forge.change("shop", name="store")
    told("SourceFollowed", f"is at {forge.url('store')} by now", "NotARepository")
    clone = running.clone(tmp_path / "clone")
    clone.write(f"{A}/workspace.yaml", sourcing(forge.url("store.git")))
    clone.commit("Name it as it is called by now")
    clone.push()
    told("SourceFollowed", f"{forge.url('store.git')}", "Followed")
    assert said(running) == "rewritten"

    forge.remove("store")
    told("SourceFollowed", "answers with 404", "NotFound")
    forge.make("store", private=True, auto_init=False)
    told("SourceFollowed", "has no branch main", "BranchNotFound")
    assert said(running) == "rewritten"
    other = forge.work("store", tmp_path / "other")
    other.write("deploy/said.yaml", config("another"))
    other.commit("Another history")
    other.push("origin", "main")
    told("CommitApplied", "was rewritten")
    assert said(running) == "rewritten", "another repository at the same URL is none of this one's"
    work.git("remote", "set-url", "origin", other.git("remote", "get-url", "origin").strip())
    push("back", "--force")
    eventually(lambda: said(running) == "back", 60, "what goes on from what is served is served")
    work.git("rm", "--quiet", "-r", "deploy")
    work.commit("Nothing")
    work.push("origin", "main")
    eventually(lambda: condition(running, "CommitApplied")["status"] == "False", 30, "nothing is no content")
    assert said(running) == "back"
    said_of_it = running.output()
    assert reader not in said_of_it
