"""What a push costs who makes it: from the start of `git push` to its end, answer included.

    .venv/bin/python bench/pushes.py [--pushes 100]

The example fleet, served by `treeplane up`, pushed to over https with git; each push changes one ConfigMap. As it
comes, where a push is taken and told what became of it; with `spec.push: Refuse`, where it is judged before it is
taken; with `spec.safety.owners`, by a tenant who may push in that workspace alone; with `spec.verification`, signed by
SSH; and such pushes as are refused. Each is followed by a plain push to a second server, which nothing is asked of: the
ratio to these says more than times do, where the machine is busy with other work.

The last rows are pushes by path to a copy of the repository that no server hosts, without a hook and with `treeplane
hook pre-receive`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import milliseconds, percentile, table
from support.plane import COMMAND, Clone, Plane, PlaneError

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "fleet-repo"
WEB = "workspaces/root/shop/web"
FILE = f"{WEB}/bench.yaml"
ANOTHERS = "workspaces/root/media/bench.yaml"
GOOD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bench}\ndata: {number: '%d'}\n"
BAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bench}\ndata: {number: [%d]}\n"
WARM = 5
NUMBERS = count()
"""So that no push says what another said."""
TOKENS = 'admin-token,admin,1,"system:masters"\nann-token,ann,2,\n'
RIGHT = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: bench-%(name)s}
rules: [{nonResourceURLs: [/git/fleet.git, /git/fleet.git/*], verbs: [%(verbs)s]}%(more)s]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: bench-%(name)s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: bench-%(name)s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ann}]
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Pushes of one kind: `file` says `text` in each; `is_taken`: as it has to be; `is_expected`: to be quick."""

    name: str
    text: str = GOOD
    file: str = FILE
    is_taken: bool = True
    is_expected: bool = True


PLAIN = Measured("taken and told")


class Series:
    """One table. `plain`: a clone of a server that only takes and tells."""

    def __init__(self, pushes: int, plain: Clone) -> None:
        self._pushes, self._plain = pushes, plain
        self.rows = [["", "median", "p99", "plain push meanwhile", "ratio of medians", "expected of p99"]]

    def run(self, clone: Clone, what: Measured) -> None:
        times, beside = list[float](), list[float]()
        for number in range(self._pushes + WARM):
            one, other = measured(clone, what), measured(self._plain, PLAIN)
            if number >= WARM:
                times.append(one)
                beside.append(other)
        median, plain = percentile(times, 0.5), percentile(beside, 0.5)
        p99, expected = milliseconds(percentile(times, 0.99)), milliseconds(0.3) if what.is_expected else ""
        self.rows.append([what.name, milliseconds(median), p99, milliseconds(plain), f"{median / plain:.2f}", expected])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pushes", type=int, default=100)
    options = parser.parse_args()
    print(f"load at the start {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as directory:
        top = Path(directory)
        (top / "tokens.csv").write_text(TOKENS)
        servers = [made(top / name) for name in ("asked", "plain")]
        with servers[0] as server, servers[1] as other:
            clone, plain = server.clone(top / "clone"), other.clone(top / "plain-clone")
            series = Series(options.pushes, plain)
            set_scene(clone, top)
            run_hosted(series, clone)
            run_elsewhere(series, clone, server.data / "repo" / "fleet.git", top / "elsewhere.git")
    table("git push, start to end", series.rows)
    print(f"load at the end {os.getloadavg()[0]:.1f}")


def made(place: Path) -> Plane:
    """A server of the example fleet."""
    fleet = shutil.copytree(EXAMPLE, place / "fleet")
    return Plane(fleet, place / "server" / "data", "--token-auth-file", str(place.parent / "tokens.csv"))


def set_scene(clone: Clone, top: Path) -> None:
    """ann may push to the repository and in root:shop:web, and signs by SSH where a commit is to be signed."""
    key = top / "ann"
    subprocess.run(["ssh-keygen", "-q", "-N", "", "-C", "", "-t", "ed25519", "-f", str(key)], check=True)
    clone.write("signers/allowed_signers", f"ann {key.with_suffix('.pub').read_text()}")
    enter = ", {nonResourceURLs: [/], verbs: [access]}"
    clone.write("workspaces/root/bench-rights.yaml", RIGHT % {"name": "push", "verbs": "get, update", "more": enter})
    clone.write(f"{WEB}/bench-rights.yaml", RIGHT % {"name": "own", "verbs": "push", "more": ""})
    for name, value in (("gpg.format", "ssh"), ("user.signingKey", str(key)), ("commit.gpgSign", "false")):
        clone.git("config", name, value)
    clone.commit("let ann push")
    clone.push()


def run_hosted(series: Series, clone: Clone) -> None:
    settings = (clone.folder / "treeplane.yaml").read_text()

    def having(*lines: str) -> None:
        """As shard-admin, signed if it has to be: the fleet's settings with some more."""
        become(clone, "admin")
        clone.write(
            "treeplane.yaml", settings.replace("spec:\n", "".join(["spec:\n", *(f"  {s}\n" for s in lines)]), 1)
        )
        clone.commit("settings")
        clone.push()

    become(clone, "admin")
    series.run(clone, PLAIN)
    having("push: Refuse")
    series.run(clone, Measured("`push: Refuse`: judged, taken and told"))
    series.run(clone, Measured("`push: Refuse`: judged and refused", BAD, is_taken=False))
    having("safety: {owners: true}")
    become(clone, "ann")
    series.run(clone, Measured("`owners`: by a tenant, taken and told"))
    series.run(clone, Measured("`owners`: by a tenant, refused", GOOD, ANOTHERS, is_taken=False))
    having("safety: {owners: true}", "push: Refuse")
    become(clone, "ann")
    series.run(clone, Measured("`owners` and `push: Refuse`: by a tenant, taken and told"))
    having("verification: {mode: Every}")
    clone.git("config", "commit.gpgSign", "true")
    series.run(clone, Measured("`verification: Every`: signed, taken and told"))
    clone.git("config", "commit.gpgSign", "false")
    series.run(clone, Measured("`verification: Every`: unsigned, refused", is_taken=False))


def run_elsewhere(series: Series, clone: Clone, hosted: Path, there: Path) -> None:
    """To a copy of the hosted repository, by path."""
    subprocess.run(["git", "clone", "--quiet", "--mirror", str(hosted), str(there)], check=True)
    clone.git("config", "commit.gpgSign", "true")
    clone.git("remote", "set-url", "origin", str(there))
    series.run(clone, Measured("elsewhere, no hook", is_expected=False))
    hook = there / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {shlex.quote(str(COMMAND))} hook pre-receive\n")
    hook.chmod(0o755)
    series.run(clone, Measured("elsewhere, `verification: Every`: judged by the hook", is_expected=False))


def become(clone: Clone, user: str) -> None:
    """Pushes by the user's token from now on, as whoever has no certificate."""
    for name in ("http.sslCert", "http.sslKey"):
        clone.git("config", "--unset", name, check=False)
    place = clone.git("remote", "get-url", "origin").strip().removeprefix("https://").rpartition("@")[2]
    clone.git("remote", "set-url", "origin", f"https://{user}:{user}-token@{place}")


def measured(clone: Clone, what: Measured) -> float:
    """Seconds of one push."""
    number = next(NUMBERS)
    clone.write(what.file, what.text % number)
    clone.commit(f"push {number}")
    began = time.perf_counter()
    is_taken = pushed(clone)
    took = time.perf_counter() - began
    if is_taken != what.is_taken:
        raise SystemExit(f"{what.name}: a push was {'taken' if is_taken else 'refused'}")
    if not is_taken:
        clone.git("reset", "--quiet", "--hard", "HEAD~1")
    return took


def pushed(clone: Clone) -> bool:
    """Whether it was taken."""
    try:
        clone.push()
    except PlaneError as error:
        if "pre-receive hook declined" not in str(error):
            raise
        return False
    return True


if __name__ == "__main__":
    main()
