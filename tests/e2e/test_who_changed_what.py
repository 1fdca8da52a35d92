"""Who changed what, in a clone of a fleet that is served: `treeplane log`, `blame` and `trace`, as users type them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Clone, Plane, environment
from support.plane import clone as clone_of
from support.signing import SshPerson, needs_ssh

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
DOCUMENT = Path(__file__).parents[2] / "docs" / "owners.md"
GIT = next(b for b in DOCUMENT.read_text().split("```yaml\n") if "[get, update]" in b).partition("```")[0]
WEB = "workspaces/root/shop/web"
FILE = f"{WEB}/deployment.yaml"
WEST = "root:infra:locations:eu-west"

pytestmark = needs_ssh


def told(clone: Clone, *words: str, given: str = "", code: int = 0) -> Any:
    command = [str(COMMAND), words[0], "-C", str(clone.folder), *words[1:], "-o", "json"]
    done = subprocess.run(command, env=environment(), input=given, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def people(commit: Any) -> tuple[str, str, str]:
    """Author, signer and pusher."""
    return (
        commit["author"].partition(" <")[0],
        commit["signer"].get("user", ""),
        (commit["pusher"] or {}).get("user", ""),
    )


@pytest.fixture
def served(plane: Callable[..., Plane], tmp_path: Path) -> Plane:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("".join(f"{user}s-token,{user},{user},tenants\n" for user in ("alice", "bob")))
    fleet = Path(shutil.copytree(EXAMPLE, tmp_path / "fleet-repo"))
    (fleet / "workspaces/root/git.yaml").write_text(GIT)
    person = SshPerson(tmp_path / "ssh", "alice")
    (fleet / "signers").mkdir()
    (fleet / "signers/allowed_signers").write_text(f"alice {person.public}\n")
    return plane(fleet, "--token-auth-file", str(tokens))


def push(served: Plane, folder: Path, user: str, change: tuple[str, str], *settings: str) -> str:
    ca = f"http.sslCAInfo={served.data / 'keys' / 'ca.crt'}"
    url = served.clone_words()[-2].removeprefix("https://")
    work = clone_of(["git", "clone", "--config", ca, f"https://{user}:{user}s-token@{url}", ""], folder)
    work.edit(FILE, *change)
    work.git(*settings, "commit", "--quiet", "--all", "--author", "Somebody <s@example.com>", "-m", f"As {user}")
    work.push()
    return work.git("rev-parse", "HEAD").strip()


def test_who_made_signed_and_pushed_and_where_it_runs(served: Plane, tmp_path: Path, eventually: Any) -> None:
    key = tmp_path / "ssh" / "alice"
    sign = ("-c", "gpg.format=ssh", "-c", f"user.signingKey={key}", "-c", "commit.gpgSign=true")
    one = push(served, tmp_path / "alice", "bob", ("replicas: 2", "replicas: 3"), *sign)
    two = push(served, tmp_path / "bob", "alice", ("replicas: 3", "replicas: 4"))

    def recorded() -> bool:
        clone.git("fetch", "--quiet")
        [traced] = told(
            clone, "trace", "deployment/web", "-n", "default", "-w", "root:shop:web", "--target", "eu-west"
        )["objects"]
        commit = traced["commit"]
        assert (commit["commit"], commit["pusher"]) == (two, {"user": "alice", "how": "push"})
        return True

    clone = served.clone(tmp_path / "fleet")
    eventually(recorded, 60, "what was pushed last is recorded")

    found = told(clone, "log", "root:shop:web", "deployment/web", "-n", "default")["commits"]
    assert [each["commit"] for each in found[:2]] == [two, one]
    assert [people(each) for each in found[:2]] == [("Somebody", "", "alice"), ("Somebody", "alice", "bob")]
    assert found[1]["signer"]["state"] == "good"
    [object_] = found[0]["workspaces"][0]["objects"]
    assert (object_["kind"], object_["name"], object_["change"]) == ("Deployment", "web", "configured")
    keys = told(clone, "log", "--keys", str(served.data / "keys"))["commits"]
    assert keys[-1]["signer"]["state"] == "server", "the first commit is the server's"

    blamed = told(clone, "blame", "deployment/web", "-n", "default", "-w", WEB)
    set_by = {each["field"]: each["commit"] for each in blamed["fields"]}
    assert set_by["spec.replicas"] == two
    assert set_by["metadata.name"] == found[-1]["commit"]

    [traced] = told(clone, "trace", "deployment/web", "-n", "default", "-w", "root:shop:web", "--target", WEST)[
        "objects"
    ]
    assert (traced["file"], traced["commit"]["commit"], traced["target"]) == (FILE, two, WEST)
    assert traced["placements"][0]["rule"].startswith(f"runs on sync target {WEST}")

    where = f"/targets/{WEST}/apis/apps/v1/deployments"

    def trace_of(copy: Any, code: int = 0) -> Any:
        return told(clone, "trace", "-f", "-", given=json.dumps(copy), code=code)["objects"][0]

    def synced() -> Any:
        """The copy that is meant, once the target has what was pushed last, which nobody waits for who records it."""
        items = [each for each in served.request("GET", where).body["items"] if each["metadata"]["name"] == "web"]
        copies = [{"apiVersion": "apps/v1", "kind": "Deployment", **each} for each in items]
        traces = [trace_of(each) for each in copies]
        assert {each["workspace"] for each in traces} == {"root:shop:web"}
        found = [pair for pair in zip(copies, traces, strict=True) if pair[1]["namespace"] == "default"]
        assert [(traced["commit"]["commit"], traced["differs"]) for _, traced in found] == [(two, [])]
        return found[0][0]

    copy = eventually(synced, 60, "it is on the target")
    copy["spec"]["replicas"] = 9
    traced = trace_of(copy, code=1)
    assert [each["field"] for each in traced["differs"]] == ["spec.replicas"]
    stranger = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "y"}}
    assert "is not from here" in told(clone, "trace", "-f", "-", given=json.dumps(stranger), code=1)
