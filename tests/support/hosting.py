"""A hosted repository: pushes by path, run by git itself with its hooks, and answered in this process.

For unit tests of what a push is answered.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import LoadedFleet

from apiserver.endpoints.githooks import install_hooks
from apiserver.endpoints.pushhooks import ASKED, PUSHER
from reconciler.commands.pushes import Pushes, PushJudge
from reconciler.loading.trial import Trial
from reconciler.loading.vouching import Vouching
from reconciler.repository.pushrecords import PushRecords
from reconciler.signatures.verifier import Verifier

REFUSING = f"{TREEPLANE_YAML}spec: {{push: Refuse}}\n"


class Hosting:
    """A fleet in a repository with hooks, and a work tree to push from. `settings`: its treeplane.yaml; `rang`: how
    often a hook rang."""

    def __init__(self, fleet: LoadedFleet, work: Path, settings: str = REFUSING) -> None:
        self.fleet, self.work, self.rang = fleet, work, 0
        self.git_dir = fleet.repo.path
        fleet.commit({"treeplane.yaml": settings})
        install_hooks(self.git_dir, "main", "treeplane/status")
        self.judge = self.judging()
        self.pushes = Pushes(self.judge, self._ring)
        self.git("init", "--quiet", "--initial-branch=main", str(work), at=self.git_dir)
        self.git("pull", "--quiet", str(self.git_dir), "main")

    def judging(self, seconds: float = 60) -> PushJudge:
        trial = Trial(self.fleet.loader, self.fleet.secrets.of, self.fleet.keys / "identities", seconds)
        vouching = Vouching(PushRecords(self.git_dir), Verifier(None), self.fleet.keys / "signers")
        return PushJudge(self.git_dir, self.fleet.mirror.path, "refs/heads/main", self.fleet.store, trial, vouching)

    def _ring(self) -> None:
        self.rang += 1

    def begin(self) -> None:
        self.patient()
        self.pushes.begin(self.fleet.mirror.repository)

    def patient(self, answer: int = 60) -> None:
        """The hook waits until it is heard however slow the machine, and so many seconds for the answer: what that is
        is looked at, and not how soon it comes."""
        hook = self.git_dir / "hooks" / "pre-receive"
        text, count = re.subn(r"patient 2 ", "patient 60 ", hook.read_text())
        text, more = re.subn(r"patient 4 ", f"patient {answer} ", text)
        assert (count, more) == (1, 1), "it waits as long as pushhooks has it"
        hook.write_text(text)

    def git(
        self, *arguments: str, at: Path | None = None, check: bool = True, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "safe.directory=*", "-c", "gc.auto=0"]
        command = ["git", "-C", str(at or self.work), *who, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=check, env={**os.environ, **variables})

    def commit(self, files: dict[str, str]) -> str:
        for path, text in files.items():
            (self.work / path).parent.mkdir(parents=True, exist_ok=True)
            (self.work / path).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "Change")
        return self.git("rev-parse", "HEAD").stdout.strip()

    def push(self, *refs: str, user: str = "") -> tuple[bool, str]:
        """Whether it was taken, and what was said. `user`: as whom the API server would push."""
        variables = {PUSHER: json.dumps({"username": user, "groups": ["system:authenticated"]})} if user else {}
        done = self.git("push", str(self.git_dir), *(refs or ("HEAD:main",)), check=False, **variables)
        return done.returncode == 0, done.stderr

    def left(self) -> list[str]:
        places = [self.git_dir / ASKED, self.git_dir / "objects"]
        return [file.name for place in places for file in place.iterdir() if len(file.name) > 2 and "in" in file.name]
