"""Where something is said: which forge, where, whose repository, and of a pull request its number. From here the forge
is spoken to.

Called by the commands: of a pull request with what somebody said and what CI tells (surroundings.py), of a repository
whose commits get statuses with the server's settings.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.forges import gitea, github, gitlab
from reconciler.forges.address import checked
from reconciler.forges.commitstatus import StatusForge
from reconciler.forges.errors import NotSaid
from reconciler.forges.forge import Forge
from reconciler.forges.forgeclient import ForgeClient
from reconciler.forges.surroundings import GITEA, GITHUB, GITLAB, PullRequestHints
from reconciler.forges.wire import ForgePatience

_PART = r"(?!\.\.?(?:/|$))[A-Za-z0-9_.-]+"
_OWNED = re.compile(f"{_PART}/{_PART}")
_GROUPED = re.compile(f"[0-9]+|{_PART}(/{_PART})+")


class _Dialect(NamedTuple):
    """`names`: of repositories. `rights`: what comments need, `states`: what statuses do."""

    api: Callable[[str], str]
    speak: Callable[[ForgeClient, str, int], github.GitHub | gitlab.GitLab | gitea.Gitea]
    names: re.Pattern[str]
    rights: str
    states: str


_DIALECTS = {
    GITHUB: _Dialect(github.api, github.GitHub, _OWNED, github.RIGHTS, github.STATUS_RIGHTS),
    GITLAB: _Dialect(gitlab.api, gitlab.GitLab, _GROUPED, gitlab.RIGHTS, gitlab.STATUS_RIGHTS),
    GITEA: _Dialect(gitea.api, gitea.Gitea, _OWNED, gitea.RIGHTS, gitea.STATUS_RIGHTS),
}

FORGES = tuple(_DIALECTS)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """`url`: of the forge or of its API."""

    forge: str
    url: str
    repository: str
    number: int

    def __str__(self) -> str:
        return f"{self.repository}{'!' if self.forge == GITLAB else '#'}{self.number}"

    def spoken_to(self, token: str, patience: ForgePatience | None = None) -> Forge:
        """Raises NotSaid."""
        dialect = _DIALECTS[self.forge]
        client = ForgeClient(dialect.api(self.url), token, dialect.rights, patience)
        return dialect.speak(client, self.repository, self.number)


@dataclass(frozen=True, slots=True)
class StatusPlace:
    """A repository whose commits get statuses. `url`: of the forge or of its API."""

    forge: str
    url: str
    repository: str

    def __post_init__(self) -> None:
        """Raises NotSaid for what is no such place."""
        dialect = _DIALECTS[self.forge]
        checked(dialect.api(self.url))
        if not dialect.names.fullmatch(self.repository):
            raise NotSaid(f"{self.repository!r} is no repository of a {self.forge}", "give owner/name")

    def spoken_to(self, token: str, patience: ForgePatience | None = None) -> StatusForge:
        """Raises NotSaid."""
        dialect = _DIALECTS[self.forge]
        client = ForgeClient(dialect.api(self.url), token, dialect.states, patience)
        return dialect.speak(client, self.repository, 0)


def located(said: PullRequestHints, told: PullRequestHints) -> PullRequest:
    """What was `said`, and of what was not, what CI tells: the URL of CI's forge, the number in CI's repository. Raises
    NotSaid."""
    forge = said.forge or told.forge
    if forge not in _DIALECTS:
        raise NotSaid("which forge is it?", f"say --forge {', '.join(FORGES[:-1])} or {FORGES[-1]}")
    same = forge == told.forge
    repository = said.repository or (told.repository if same else "")
    if not _DIALECTS[forge].names.fullmatch(repository):
        what = f"{repository!r} is no repository" if repository else "which repository is it?"
        raise NotSaid(what, "say --repository owner/name")
    number = said.number or (told.number if same and not said.repository else 0)
    if number <= 0:
        raise NotSaid("which pull request is it?", "say --pull-request with its number")
    return PullRequest(forge, said.url or (told.url if same else ""), repository, number)
