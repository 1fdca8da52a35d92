"""From a webhook to what kubectl sees: how soon a push on a forge is served that the forge tells of.

    .venv/bin/python bench/webhook.py [--pushes 60]

A git server over TLS on loopback, and `treeplane up` of a repository there, which looks by itself once an hour. Each
push changes a ConfigMap of one workspace; a second or two later the forge's webhook is posted, and the time runs from
that until a GET through the API has the new value. Beside each, one `git ls-remote` of the same repository: the ratio
to that says more than times do, where the machine is busy with other work.
"""

from __future__ import annotations

import argparse
import hmac
import random
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from ssl import create_default_context

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import milliseconds, percentile, table
from support.gitserver import GitServer
from support.plane import Clone, Plane, environment

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "fleet-repo"
FILE = "workspaces/root/shop/web/bench.yaml"
PATH = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps/bench"
TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bench}\ndata: {number: '%d'}\n"
WARM = 3
BODY = b'{"ref": "refs/heads/main"}'


class Forge:
    """A repository on a git server, and who tells `server` of a push there."""

    def __init__(self, folder: Path) -> None:
        self.work = Clone(folder / "work")
        self.work.folder.mkdir()
        for each in EXAMPLE.rglob("*"):
            if each.is_file():
                self.work.write(str(each.relative_to(EXAMPLE)), each.read_text())
        served = folder / "served" / "fleet.git"
        self.work.git("init", "--quiet", "--initial-branch=main")
        self.work.commit("begin")
        self.work.git("clone", "--quiet", "--bare", ".", str(served))
        self.work.git("-C", str(served), "config", "http.receivepack", "true")
        self.work.git("remote", "add", "origin", str(served))
        self.work.git("push", "--quiet", "--set-upstream", "origin", "main")
        self.git = GitServer(folder / "served", folder / "keys")
        self.secret = secrets.token_hex(32)

    def push(self, number: int) -> None:
        self.work.write(FILE, TEXT % number)
        self.work.commit(f"number {number}")
        self.work.push()

    def tell(self, server: Plane) -> None:
        signature = hmac.digest(self.secret.encode(), BODY, "sha256").hex()
        request = urllib.request.Request(
            f"https://127.0.0.1:{server.port}/webhooks/push", BODY, {"X-Hub-Signature-256": f"sha256={signature}"}
        )
        context = create_default_context(cafile=str(server.data / "keys" / "ca.crt"))
        with urllib.request.urlopen(request, context=context) as answer:
            assert answer.status == 202


def seen(server: Plane, number: int) -> None:
    while True:
        found = server.request("GET", PATH)
        if found.status == 200 and found.body["data"]["number"] == str(number):
            return
        time.sleep(0.005)


def run(pushes: int, folder: Path) -> tuple[list[float], list[float]]:
    """Seconds of each, and of what is beside it."""
    forge = Forge(folder)
    told = {"webhook-secret": forge.secret.encode(), "forge.crt": forge.git.ca}
    for name, content in told.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    options = ["--webhook-secret-file", "webhook-secret", "--git-ca-file", "forge.crt", "--poll", "3600"]
    times, beside = [], []
    try:
        with Plane(forge.git.url("fleet.git"), folder / "data", *options) as server:
            for number in range(WARM + pushes):
                forge.push(number)
                time.sleep(random.uniform(1, 2))
                began = time.perf_counter()
                forge.tell(server)
                seen(server, number)
                times.append(time.perf_counter() - began)
                began = time.perf_counter()
                asked = ["git", "-c", f"http.sslCAInfo={folder}/forge.crt", "ls-remote", forge.git.url("fleet.git")]
                subprocess.run(asked, check=True, capture_output=True, env=environment())
                beside.append(time.perf_counter() - began)
    finally:
        forge.git.close()
    return times[WARM:], beside[WARM:]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--pushes", type=int, default=60)
    pushes = parser.parse_args().pushes
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as folder:
        times, beside = run(pushes, Path(folder))
    ratio = percentile(times, 0.5) / percentile(beside, 0.5)
    rows = [
        ["", "median", "p95", "p99", "ratio of medians", "expected of p95"],
        ["webhook to visible", *_shown(times), f"{ratio:.1f}", "1000 ms"],
        ["one `git ls-remote`", *_shown(beside)],
    ]
    table(f"{pushes} pushes that a webhook tells of", rows)


def _shown(times: list[float]) -> list[str]:
    return [milliseconds(percentile(times, each)) for each in (0.5, 0.95, 0.99)]


if __name__ == "__main__":
    main()
