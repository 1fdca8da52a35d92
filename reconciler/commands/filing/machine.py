"""The server's machine, where there is no clone: what a data directory serves, and a clone of that to push from.

Called by `desk`. The clone is made by the line that `up` prints, with the administrator's certificate, in a place that
is gone afterwards; so a push from it is a push like any other, and is answered like one.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apiserver.auth.keys import Keys
from apiserver.model.hostedrepository import PLACE, URL
from apiserver.model.redaction import redact
from reconciler.commands import fleetfolder
from reconciler.commands.clone import WorkTree
from reconciler.commands.failure import Failure
from reconciler.commands.servedat import ServedAt
from reconciler.commands.words import clone_arguments
from reconciler.repository.command import git
from reconciler.repository.objects import Repository


def default_data_dir() -> Path:
    """The data directory of `treeplane up` without --data-dir."""
    return Path(os.environ.get("TREEPLANE_DATA_DIR") or ".treeplane")


def hosted(data_dir: Path) -> Path:
    """The repository that is hosted from a data directory. Raises Failure where none is."""
    git_dir = data_dir / PLACE
    if git_dir.is_dir():
        return git_dir
    try:
        where = redact((data_dir / "source").read_text().strip())
    except OSError:
        raise Failure(f"nothing is served from {data_dir} yet", "treeplane up REPOSITORY", 2) from None
    raise Failure(
        f"{data_dir} hosts no repository: it serves {where}", "do it in a clone of that: --clone DIRECTORY", 2
    )


@contextmanager
def cloned(data_dir: Path, keys: Path, scratch: Path, folder: str) -> Iterator[WorkTree]:
    """A clone of what is hosted. Raises Failure where the server does not run."""
    hosted(data_dir)
    served = ServedAt.read(data_dir)
    if served is None or not served.answers():
        where = f" at {served.local_url}" if served is not None else ""
        raise Failure(
            f"the server of {data_dir} does not run{where}, so nothing can be pushed to it",
            "start it: treeplane up; or do it in a clone: --clone DIRECTORY",
        )
    top, certificates = scratch / "fleet", Keys(keys)
    arguments = [*clone_arguments(served.local_url, certificates, certificates.ca, str(top)), "--config", "http.proxy="]
    answer = git(top / ".git", *arguments, variables=_credentials(certificates))
    if answer.code != 0:
        raise Failure(f"{served.local_url}{URL} cannot be cloned: {answer.error or answer.output}")
    clone = WorkTree(top, Repository(top))
    fleetfolder.settle(clone.repo, top, top, folder)
    for name, value in _who(clone).items():
        clone.run("config", name, value)
    yield clone


def push(clone: WorkTree, data_dir: Path, keys: Path) -> tuple[str, list[str]]:
    """Pushes what was committed: where to, and the answer. Raises Failure with the answer where it is refused."""
    branch = clone.run("symbolic-ref", "--short", "HEAD").strip()
    arguments = ("-C", str(clone.top), "push", "origin", f"HEAD:refs/heads/{branch}")
    done = git(clone.repo.git_dir.absolute(), *arguments, variables=_credentials(Keys(keys)))
    said = [line.removeprefix("remote: ").rstrip() for line in done.error.splitlines() if line.startswith("remote: ")]
    if done.code != 0:
        raise Failure(
            f"the server of {data_dir} refused the push:\n{done.error or done.output}", "nothing was changed in git"
        )
    served = ServedAt.read(data_dir)
    return f"{served.url if served is not None else ''}{URL}", [line for line in said if line]


def _credentials(keys: Keys) -> dict[str, str]:
    """In the environment, too, where others' may stand, which git would take instead."""
    return {
        "GIT_SSL_CAINFO": str(keys.ca.resolve()),
        "GIT_SSL_CERT": str(keys.admin.certificate.resolve()),
        "GIT_SSL_KEY": str(keys.admin.key.resolve()),
    }


def _who(clone: WorkTree) -> dict[str, str]:
    """As whom to commit, where the user's git does not say: whoever is logged in here, also behind sudo."""
    answer = git(clone.repo.git_dir.absolute(), "config", "--global", "--get", "user.email")
    if answer.code == 0 and answer.output.strip():
        return {}
    login = os.environ.get("SUDO_USER") or _login()
    return {"user.name": login, "user.email": f"{login}@{socket.gethostname()}"}


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"
