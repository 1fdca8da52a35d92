"""What a repository on this machine was cloned from, as far as it matters to a start: whether the clone is whole, and
whether its origin has a branch that the clone lacks.

Called by traces (commands). git is run in the clone itself, with its configuration and the user's credentials; it never
asks for anything.
"""

from __future__ import annotations

from reconciler.repository.command import Patience, git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.ssh import SshSettings, ssh_variables

_ASK = Patience(total=5)


def incomplete(repo: Repository) -> str:
    """The command that completes a clone which is shallow or partial; "" if it is whole."""
    if is_shallow(repo):
        return f"git -C {repo.path} fetch --unshallow"
    config = repo.git.config
    promising = [e.name for e in config if e.name.startswith("remote.") and e.name.endswith(".promisor")]
    if not promising or not _lacks_objects(repo):
        return ""
    remote = promising[0].removeprefix("remote.").removesuffix(".promisor")
    unfiltered = f"git -C {repo.path} config --unset remote.{remote}.partialclonefilter"
    return f"{unfiltered}; git -C {repo.path} fetch --refetch {remote} '+refs/heads/*:refs/remotes/{remote}/*'"


def narrow(repo: Repository) -> str:
    """The commands that have a clone fetch all branches where it fetches one alone; "" if it fetches them all, or has
    no origin."""
    said = git(repo.git_dir, "config", "--get-all", "remote.origin.fetch").output.split()
    wide = [
        each for each in said if each.lstrip("+").startswith("refs/heads/*:") or each.lstrip("+").startswith("refs/*:")
    ]
    if not said or wide:
        return ""
    return f"git -C {repo.path} remote set-branches origin '*'; git -C {repo.path} fetch origin"


def is_shallow(repo: Repository) -> bool:
    shallow = repo.git_dir / "shallow"
    return shallow.is_file() and shallow.stat().st_size > 0


def url(repo: Repository) -> str:
    """Where `origin` is; "" if there is none. With credentials, if it has any."""
    return git(repo.git_dir, "config", "--get", "remote.origin.url").output.strip()


def has_branch(repo: Repository, branch: str) -> bool:
    """Whether origin has a branch, asked for five seconds. Raises RepositoryUnreadable where it does not answer."""
    settings = {"http.lowSpeedLimit": "1", "http.lowSpeedTime": "5", "credential.interactive": "false"}
    answer = git(
        repo.git_dir,
        "ls-remote",
        "origin",
        f"refs/heads/{branch}",
        settings=settings,
        variables=ssh_variables(repo.git_dir, SshSettings(connect=5, stall=5)),
        patience=_ASK,
    )
    if answer.code != 0:
        raise RepositoryUnreadable(answer.error)
    return bool(answer.output.strip())


def _lacks_objects(repo: Repository) -> bool:
    answer = git(repo.git_dir, "rev-list", "--objects", "--all", "--missing=print", "--no-object-names")
    return answer.code != 0 or any(line.startswith("?") for line in answer.output.splitlines())
