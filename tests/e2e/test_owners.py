"""Who may touch what, and whose signature it takes: with git, kubectl and a server as people use them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.offering import UNBOUND, UNUSED, kind, of_type
from support.ownedfleet import granting, pushers
from support.plane import COMMAND, Clone, Plane, PlaneError, environment
from support.plane import clone as clone_of
from support.signing import SshPerson, needs_ssh
from support.widgets import binding, export, schema, widget

from apiserver.model.storagenames import EXPORTS, TYPES

R = "workspaces/root"
STATUS = "refs/heads/treeplane/status"
SIGNERS = "signers/allowed_signers"
DOCUMENT = Path(__file__).parents[2] / "docs" / "owners.md"
GIT = next(b for b in DOCUMENT.read_text().split("```yaml\n") if "[get, update]" in b).partition("```")[0]


def fleet(spec: str) -> str:
    return f"apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {{name: owned}}\nspec: {spec}\n"


def app(value: str, name: str = "app") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{says: {value}}}\n"


def files(spec: str) -> dict[str, str]:
    """`root:a` is alice's, `root:b` bob's."""
    found = {"treeplane.yaml": fleet(spec), f"{R}/git.yaml": GIT}
    for name, user in (("a", "alice"), ("b", "bob")):
        found |= {f"{R}/{name}/workspace.yaml": "", f"{R}/{name}/pushers.yaml": pushers(user)}
        found[f"{R}/{name}/app.yaml"] = app("begin")
    return found


def written(folder: Path, content: dict[str, str]) -> Clone:
    work = Clone(folder)
    for path, text in content.items():
        work.write(path, text)
    return work


def says(server: Plane, workspace: str, name: str = "app") -> str:
    return server.kubectl("get", "configmap", name, "-o", "jsonpath={.data.says}", workspace=workspace)


def commit_applied(server: Plane, name: str) -> dict[str, str]:
    """The condition of a workspace below root, as kubectl shows it."""
    shown = json.loads(server.kubectl("get", "workspace", name, "-o", "json", workspace="root"))
    [found] = [each for each in shown["status"]["conditions"] if each["type"] == "CommitApplied"]
    return dict(found)


@pytest.fixture
def hosted(plane: Callable[..., Plane], tmp_path: Path) -> Plane:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("".join(f"{user}s-token,{user},{user},tenants\n" for user in ("alice", "bob", "carol")))
    seed = written(tmp_path / "seed", files("{safety: {owners: true}}"))
    return plane(seed.folder, "--token-auth-file", str(tokens))


@pytest.fixture
def people(hosted: Plane, tmp_path: Path) -> dict[str, Clone]:
    """A clone for each, with his token."""
    ca = f"http.sslCAInfo={hosted.data / 'keys' / 'ca.crt'}"
    url = hosted.clone_words()[-2].removeprefix("https://")
    return {
        user: clone_of(["git", "clone", "--config", ca, f"https://{user}:{user}s-token@{url}", ""], tmp_path / user)
        for user in ("alice", "bob", "carol")
    }


def push(work: Clone, path: str, text: str) -> str:
    work.git("pull", "--quiet", "--rebase")
    work.write(path, text)
    work.commit(f"Change {path}")
    return work.push()


def refused(work: Clone, path: str, text: str) -> str:
    """What git said; the clone is put back."""
    with pytest.raises(PlaneError, match="pre-receive hook declined") as found:
        push(work, path, text)
    work.git("reset", "--quiet", "--hard", "origin/main")
    return str(found.value)


def test_each_pushes_to_what_is_his(hosted: Plane, people: dict[str, Clone]) -> None:
    for user, name, other in (("alice", "a", "b"), ("bob", "b", "a")):
        said = push(people[user], f"{R}/{name}/app.yaml", app(user))
        assert f"treeplane: pushed by {user}" in said
        assert f"workspace root:{name} configured (1 object)" in said
        assert says(hosted, f"root:{name}") == user
        head = people[user].git("rev-parse", "HEAD")
        said = refused(people[user], f"{R}/{other}/more.yaml", app("stolen", "more"))
        assert "treeplane: refused, since it may not be made so, as the served treeplane.yaml says:" in said
        assert f"{R}/{other}/more.yaml: is touched by " in said
        assert f"nobody gave {user} the verb `push` on /git/fleet.git in root:{other} or a workspace above" in said
        assert people[user].git("ls-remote", "origin", "refs/heads/main").split()[0] == head.strip()
        with pytest.raises(PlaneError, match="not found"):
            says(hosted, f"root:{other}", "more")
        assert commit_applied(hosted, other)["status"] == "True"
    # Nor what is root's, or a workspace of his own making.
    for file in ("treeplane.yaml", SIGNERS, f"{R}/app.yaml", f"{R}/new/workspace.yaml", f"{R}/a/workspace.yaml"):
        assert f"{file}: is touched by " in refused(people["alice"], file, app("stolen"))


def test_a_right_is_given_in_git_and_counts_from_the_next_push_on(
    hosted: Plane, people: dict[str, Clone], eventually: Any
) -> None:
    assert "nobody gave carol" in refused(people["carol"], f"{R}/a/app.yaml", app("carol"))
    said = push(people["alice"], f"{R}/a/pushers.yaml", pushers("alice", "carol"))
    assert "is served" in said
    assert "treeplane: pushed by carol" in push(people["carol"], f"{R}/a/app.yaml", app("carol"))
    assert says(hosted, "root:a") == "carol"
    assert "nobody gave carol" in refused(people["carol"], f"{R}/b/app.yaml", app("carol"))
    head = people["carol"].git("rev-parse", "HEAD").strip()

    # A crash changes nothing of it.
    before = hosted.workspaces()
    hosted.stop(signal.SIGKILL)
    hosted.start()
    assert hosted.workspaces() == before
    assert says(hosted, "root:a") == "carol"
    assert commit_applied(hosted, "a")["status"] == "True"
    assert "nobody gave carol" in refused(people["carol"], f"{R}/b/app.yaml", app("carol"))
    assert people["carol"].git("ls-remote", "origin", "refs/heads/main").split()[0] == head
    push(people["alice"], f"{R}/a/pushers.yaml", pushers("alice"))
    assert "nobody gave carol" in refused(people["carol"], f"{R}/a/app.yaml", app("carol again"))
    assert "treeplane: pushed by alice" in push(people["alice"], f"{R}/a/app.yaml", app("alice"))


def test_what_a_push_takes_of_another_workspace_takes_the_right_to_it(
    hosted: Plane, people: dict[str, Clone], eventually: Any
) -> None:
    """bob offers an API and a type, and alice would have both."""
    alice, bob = people["alice"], people["bob"]
    push(bob, f"{R}/b/schema.yaml", schema())
    push(bob, f"{R}/b/export.yaml", export())
    push(bob, f"{R}/b/gold.yaml", kind("gold"))
    head = alice.git("ls-remote", "origin", "refs/heads/main").split()[0]
    for file, text, why in (
        (f"{R}/a/take.yaml", binding("root:b"), UNBOUND),
        (f"{R}/a/kid/workspace.yaml", of_type("gold", "root:b"), UNUSED),
    ):
        assert f"pushed by alice: {why} (leave it out, or ask" in refused(alice, file, text)
    assert alice.git("ls-remote", "origin", "refs/heads/main").split()[0] == head
    rights = "---\n".join((granting("bind", EXPORTS, "alice"), granting("use", TYPES, "alice", name="users")))
    push(bob, f"{R}/b/takers.yaml", rights)
    alice.write(f"{R}/a/kid/workspace.yaml", of_type("gold", "root:b"))
    said = push(alice, f"{R}/a/take.yaml", binding("root:b"))
    assert "treeplane: pushed by alice" in said
    push(alice, f"{R}/a/widget.yaml", widget(size=3))
    assert hosted.kubectl("get", "widget", "w", "-o", "jsonpath={.spec.size}", workspace="root:a") == "3"
    found = json.loads(hosted.kubectl("get", "workspace", "kid", "-o", "json", workspace="root:a"))
    assert (found["spec"]["type"]["name"], found["status"]["phase"]) == ("gold", "Ready")

    # What is served stays when the right is taken away, after a crash too; the next is refused.
    push(bob, f"{R}/b/takers.yaml", app("nothing", "nothing"))
    hosted.stop(signal.SIGKILL)
    hosted.start()
    push(alice, f"{R}/a/take.yaml", f"{binding('root:b')}\n")
    assert hosted.kubectl("get", "widget", "w", "-o", "jsonpath={.spec.size}", workspace="root:a") == "3"
    assert UNBOUND in refused(alice, f"{R}/a/more.yaml", binding("root:b", "more"))


def test_whoever_begins_with_a_work_tree_may_do_everything(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    subprocess.run([COMMAND, "init", tmp_path / "fleet"], env=environment(), capture_output=True, check=True)
    work = Clone(tmp_path / "fleet")
    assert "owners: true" in (work.folder / "treeplane.yaml").read_text()
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    server = plane(work.folder)
    work.write(f"{R}/new/workspace.yaml", "")
    work.edit("treeplane.yaml", "ReadOnly", "Store")
    work.write(f"{R}/team/app.yaml", app("mine"))
    work.commit("Change everything")
    eventually(lambda: "root:new" in server.workspaces(), 20)
    # Workspaces are written one by one.
    said = ("get", "configmap", "app", "-o", "jsonpath={.data.says}", "--ignore-not-found")
    eventually(lambda: server.kubectl(*said, workspace="root:team") == "mine", 20)
    eventually(lambda: "[+]fleet ok" in readiness(server), 20)


class Signed:
    """A bare repository behind a URL, and two people who sign what they push to it. `inside`: before all paths of the
    fleet there."""

    def __init__(self, folder: Path, inside: str = "") -> None:
        self.folder, self.url = folder, f"file://{folder / 'fleet.git'}"
        self.keys = folder / "keys"
        self.people = {name: SshPerson(folder / "ssh", name) for name in ("alice", "bob")}
        lines = "".join(f"{name} {person.public}\n" for name, person in self.people.items())
        (self.keys / "signers").mkdir(parents=True)
        (self.keys / "signers" / "allowed_signers").write_text(lines)
        content = files("{safety: {owners: true}, verification: {mode: Every}}")
        content = {f"{inside}{path}": text for path, text in {**content, SIGNERS: lines}.items()}
        work = written(folder / "work", content)
        work.git("init", "--quiet", "--initial-branch=main")
        self.work = work
        self.commit("alice", {})
        work.git("clone", "--quiet", "--bare", ".", str(folder / "fleet.git"))
        work.git("remote", "add", "origin", str(folder / "fleet.git"))

    def commit(self, who: str, content: dict[str, str], message: str = "Change") -> str:
        """`who` "" signs nothing."""
        written(self.work.folder, content)
        sign = ["-c", "gpg.format=ssh", "-c", f"user.signingKey={self.people[who].file}"] if who else []
        self.work.git("add", "--all")
        self.work.git(*sign, "commit", "--quiet", "--allow-empty", *(["-S"] if who else []), "-m", message)
        return self.work.git("rev-parse", "HEAD").strip()

    def push(self, who: str, content: dict[str, str], message: str = "Change") -> str:
        made = self.commit(who, content, message)
        self.work.git("push", "--quiet", "--force", "origin", "HEAD:main")
        return made


@pytest.fixture
def signed(tmp_path: Path) -> Signed:
    return Signed(tmp_path / "signed")


def readiness(server: Plane, workspace: str = "") -> str:
    """Who sees the workspace root is told why."""
    return str(server.request("GET", f"{workspace}/readyz?verbose").body)


def held_in_root(server: Plane) -> str:
    found = server.get("/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/cluster")
    return json.dumps(found["status"])


@needs_ssh
def test_where_nobody_can_refuse_a_push_it_is_held_until_somebody_with_the_right_allows_it(
    plane: Callable[..., Plane], signed: Signed, tmp_path: Path, eventually: Any
) -> None:
    options = (signed.url, "--poll", "1", "--keys", str(signed.keys))
    server = plane(*options)
    assert says(server, "root:a") == "begin"
    signed.push("bob", {f"{R}/b/app.yaml": app("bob")})
    eventually(lambda: says(server, "root:b") == "bob", 20, "bob's own")

    # What nobody signed holds all that follows.
    good = signed.work.git("rev-parse", "HEAD").strip()
    bad = signed.push("", {f"{R}/a/app.yaml": app("unsigned")})
    signed.push("alice", {f"{R}/a/app.yaml": app("alice")})
    why = f"{bad:.12} is not taken, since it is not signed"
    eventually(lambda: why in readiness(server, "/clusters/root"), 20, "it is held as a whole")
    eventually(lambda: "[-]fleet Held\n" in readiness(server))
    eventually(lambda: why in held_in_root(server))
    assert says(server, "root:a") == "begin"
    signed.work.git("reset", "--quiet", "--hard", good)
    signed.push("alice", {f"{R}/a/app.yaml": app("signed")})
    eventually(lambda: says(server, "root:a") == "signed", 20, "the branch without it goes on")
    eventually(lambda: "[+]fleet ok" in readiness(server), what="and nothing is wrong with the fleet")
    eventually(lambda: why not in held_in_root(server))

    # What is somebody else's is held where it is, and goes on once he says so.
    did = signed.push("bob", {f"{R}/a/more.yaml": app("bob", "more"), f"{R}/b/app.yaml": app("bob again")})
    eventually(lambda: says(server, "root:b") == "bob again", 20, "his own goes on")
    told = eventually(lambda: told_of(server, "a", did), 20, "and the other is held")
    assert f"{R}/a/more.yaml: is touched by {did:.10}, signed by bob: nobody gave bob the verb `push`" in told
    assert f"`Allow-Push: {did}`" in told
    with pytest.raises(PlaneError, match="not found"):
        says(server, "root:a", "more")
    signed.push("bob", {}, f"Allow it myself\n\nAllow-Push: {did}")
    signed.push("bob", {f"{R}/b/app.yaml": app("bob at last")})
    eventually(lambda: says(server, "root:b") == "bob at last", 20)
    eventually(lambda: commit_applied(server, "a")["status"] == "False")
    before = server.everything()

    # All is lost but the keys and the repository.
    server.stop()
    holder = re.findall(r"^Writer: (\S+)$", statuses(signed), re.MULTILINE)[0]
    shutil.rmtree(server.data)
    server = plane(*options, "--take-over", holder, data=tmp_path / "again" / "data")
    assert uids(server.everything()) == uids(before)
    assert told_of(server, "a", did) == told
    allowed = signed.push("alice", {}, f"Take it\n\nAllow-Push: {did}")
    eventually(lambda: commit_applied(server, "a")["status"] == "True", 20, "alice allows it")
    assert says(server, "root:a", "more") == "bob"
    assert says(server, "root:a") == "signed"
    eventually(lambda: allowed in statuses(signed), 20, "that is recorded")


@needs_ssh
def test_a_fleet_in_a_folder_behind_a_url_has_owners_and_sees_nothing_outside(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    inside = "fleets/prod"
    signed = Signed(tmp_path / "signed", f"{inside}/")
    server = plane(signed.url, "--poll", "1", "--keys", str(signed.keys), "--path", inside)
    assert says(server, "root:a") == "begin"

    # Nobody is asked for what is beside the folder, and nobody has to sign it.
    base = {"bases/kustomization.yaml": "resources: [base.yaml]\n", "bases/base.yaml": app("base", "base")}
    beside = signed.push("", {**base, "services/main.go": "package main\n", f"{R}/a/app.yaml": app("elsewhere")})
    eventually(lambda: served(server) == beside, 20, "it is the newest at once")
    assert says(server, "root:a") == "begin"

    # In the folder it takes the right.
    did = signed.push("bob", {f"{inside}/{R}/a/app.yaml": app("bob"), f"{inside}/{R}/b/app.yaml": app("bob")})
    eventually(lambda: says(server, "root:b") == "bob", 20, "his own goes on")
    told = eventually(lambda: told_of(server, "a", did), 20, "and the other is held")
    assert f"{inside}/{R}/a/app.yaml: is touched by {did:.10}, signed by bob" in told
    signed.push("alice", {}, f"Take it\n\nAllow-Push: {did}")
    eventually(lambda: says(server, "root:a") == "bob", 20)

    # A base outside of the folder is no base, and the error says so.
    file = f"{inside}/{R}/a/made/kustomization.yaml"
    signed.push("alice", {file: "resources: [../../../../../../bases]\n"})
    eventually(lambda: f"{file}: cannot be rendered" in commit_applied(server, "a")["message"], 30)
    message = commit_applied(server, "a")["message"]
    assert f"it names bases, which is outside of the fleet's folder {inside}" in message
    with pytest.raises(PlaneError, match="not found"):
        says(server, "root:a", "base")
    assert says(server, "root:b") == "bob"


def served(server: Plane) -> str:
    found = server.get("/clusters/root/status")
    return str(found["commit"] if isinstance(found, dict) else json.loads(found)["commit"])


@needs_ssh
def test_a_hosted_fleet_for_which_nobody_can_sign_any_more(
    plane: Callable[..., Plane], tmp_path: Path, eventually: Any
) -> None:
    """The one command that docs/signatures.md has for it, typed in a clone."""
    seed = written(tmp_path / "seed", files("{verification: {mode: Every}}"))
    server = plane(seed.folder)
    work = server.clone(tmp_path / "work")
    assert "is not taken, since it is not signed" in refused(work, f"{R}/a/app.yaml", app("unsigned"))
    work.write("treeplane.yaml", fleet("{}"))
    head = work.commit("Nobody can sign")
    server.stop()
    document = DOCUMENT.with_name("signatures.md").read_text()
    [command] = re.findall(r"^ *(git -C \.treeplane/repo/fleet\.git .*)$", document, re.MULTILINE)
    words = [word.replace("$PWD", str(work.folder)).strip('"') for word in command.split()]
    words[2] = str(server.data / "repo" / "fleet.git")
    work.git(*words[1:])
    server.arguments = ("--take-head", head)
    server.start()
    assert "treeplane: pushed by kcp-admin" in push(work, f"{R}/a/app.yaml", app("free"))
    assert says(server, "root:a") == "free"


def told_of(server: Plane, name: str, commit: str) -> str:
    """Why a workspace is held for a commit, "" while it is not."""
    found = commit_applied(server, name)
    return found["message"] if found["status"] == "False" and f"{commit:.10}" in found["message"] else ""


def statuses(signed: Signed) -> str:
    return Clone(signed.folder / "fleet.git").git("log", "--first-parent", "--format=%B", STATUS)


def uids(objects: dict[str, Any]) -> dict[str, str]:
    return {name: found["metadata"].get("uid", "") for name, found in objects.items() if "/events/" not in name}
