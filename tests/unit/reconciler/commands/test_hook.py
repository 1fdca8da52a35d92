"""`treeplane hook pre-receive` on a git server of somebody else's: run by git on pushes by path."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.ownedfleet import OWNED
from support.signing import SshPerson, needs_ssh

HOOK = """\
#!/bin/sh
exec {python} -m reconciler hook pre-receive
"""


class Elsewhere:
    """A bare repository with the hook, whose fleet is served and recorded, and a clone of it."""

    def __init__(self, folder: Path) -> None:
        self.fleet = LoadedFleet(folder / "fleet")
        self.fleet.begin()
        self.git_dir, self.work = self.fleet.repo.path, folder / "work"
        hook = self.git_dir / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(HOOK.format(python=shlex.quote(sys.executable)))
        hook.chmod(0o755)
        self.git("clone", "--quiet", str(self.git_dir), str(self.work), at=folder)

    def serve(self, files: dict[str, str]) -> None:
        self.fleet.commit(files)
        self.fleet.publish()
        self.git("pull", "--quiet", "--rebase", "origin", "main")

    def git(self, *arguments: str, at: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "gc.auto=0"]
        # git runs the hook elsewhere: what is imported here is imported there.
        paths = os.pathsep.join(path or str(Path.cwd()) for path in sys.path)
        return subprocess.run(
            ["git", "-C", str(at or self.work), *who, *arguments],
            capture_output=True, text=True, check=check, env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip

    def push(self, files: dict[str, str], *refs: str) -> tuple[bool, list[str]]:
        """Whether it was taken, and what was said."""
        for path, text in files.items():
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            (self.work / path).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "Change")
        done = self.git("push", "origin", *(refs or ("HEAD:main",)), check=False)
        lines = [line.rstrip() for line in done.stderr.splitlines()]
        return done.returncode == 0, [
            line.removeprefix("remote: treeplane: ") for line in lines if "treeplane: " in line
        ]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    made = Elsewhere(tmp_path)
    yield made
    made.fleet.close()


def test_a_push_is_told_what_it_changes(elsewhere: Elsewhere) -> None:
    elsewhere.serve({})
    taken, said = elsewhere.push({f"{A}/app.yaml": configmap(a="c")})
    assert taken, said
    head = elsewhere.fleet.repo.head
    assert said == [
        f"commit {head:.10} is taken, which will come to: 1 configured",
        "workspace root:a configured (1 object)",
    ]
    taken, said = elsewhere.push({f"{B}/bad\x1b[2J.txt": "x", f"{B}/bad.yaml": "kind: ["})
    assert taken
    assert said[1:3] == ["It is taken although it would hold 1 workspace:", "workspace root:b held:"]
    assert said[3].startswith(f"  {B}/bad.yaml:2:1: YAML: ")
    # What was pushed before and is not served yet is not this push's fault.
    taken, said = elsewhere.push({f"{A}/app.yaml": configmap(a="d")})
    assert (taken, [line for line in said if "held" in line]) == (True, [])


def test_where_the_served_fleet_says_so_it_is_refused(elsewhere: Elsewhere) -> None:
    elsewhere.serve({"treeplane.yaml": f"{TREEPLANE_YAML}spec: {{push: Refuse}}\n"})
    head = elsewhere.fleet.repo.head
    taken, said = elsewhere.push({f"{B}/bad.yaml": "kind: [", "treeplane.yaml": TREEPLANE_YAML})
    assert not taken
    assert said[:2] == [
        "refused, since it would hold 1 workspace (spec.push of the served treeplane.yaml is Refuse):",
        "workspace root:b held:",
    ]
    assert elsewhere.fleet.repo.head == head
    assert not [*elsewhere.git_dir.glob("objects/*incoming*")]
    # Other branches are nobody's to judge.
    assert elsewhere.push({}, "HEAD:refs/heads/other", "HEAD:refs/tags/v1") == (True, [])
    taken, said = elsewhere.push({"treeplane.yaml": "kind: ["})
    assert not taken
    assert said[0].startswith("refused, since nothing of it could be served")


def test_what_cannot_be_judged_is_taken(elsewhere: Elsewhere) -> None:
    assert elsewhere.push({f"{B}/bad.yaml": "kind: ["}) == (True, [])  # nothing is recorded yet
    elsewhere.serve({"treeplane.yaml": f"{TREEPLANE_YAML}spec: {{push: Refuse}}\n"})
    elsewhere.git("reset", "--quiet", "--hard", "HEAD~2")
    taken, said = elsewhere.push({f"{B}/worse.yaml": "kind: ["}, "--force", "HEAD:main")
    assert (taken, said) == (True, ["taken without being judged: the branch is rewritten"])


@needs_ssh
def test_who_signs_with_git_itself_may_push_what_is_his(elsewhere: Elsewhere, tmp_path: Path) -> None:
    alice = SshPerson(tmp_path / "keys", "alice")
    elsewhere.serve({**OWNED, "signers/allowed_signers": f"alice {alice.public}\n"})
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(alice.file)), ("commit.gpgSign", "true")):
        elsewhere.git("config", name, value)
    taken, said = elsewhere.push({f"{A}/app.yaml": configmap(a="hers")})
    assert taken, said
    assert said[1:] == ["workspace root:a configured (1 object)"]
    head = elsewhere.fleet.repo.head
    taken, said = elsewhere.push({f"{B}/app.yaml": configmap(a="stolen")})
    assert not taken
    assert said[0] == "refused, since it may not be made so, as the served treeplane.yaml says:"
    assert f"{B}/app.yaml: is touched by " in said[1] and "signed by alice: nobody gave alice" in said[1]
    assert elsewhere.fleet.repo.head == head
    elsewhere.git("reset", "--quiet", "--hard", head)
    elsewhere.git("config", "commit.gpgSign", "false")
    assert not elsewhere.push({f"{A}/app.yaml": configmap(a="not hers")})[0]
