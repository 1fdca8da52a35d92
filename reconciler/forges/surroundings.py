"""Which pull request of which forge, as CI tells it in its environment. Called by the commands, which may be told
otherwise.

Gitea and Forgejo tell it in GitHub's words, and say besides that they are not GitHub.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

GITHUB, GITLAB, GITEA = "github", "gitlab", "gitea"
TOKEN = "TREEPLANE_FORGE_TOKEN"
TOKENS = {
    GITHUB: (TOKEN, "GITHUB_TOKEN"),
    GITLAB: (TOKEN, "GITLAB_TOKEN"),
    GITEA: (TOKEN, "GITEA_TOKEN", "FORGEJO_TOKEN", "GITHUB_TOKEN"),
}
"""Where a token is looked for, the first that is there."""

_PULL = re.compile(r"refs/pull/([0-9]{1,9})/(merge|head)")


class PullRequestHints(NamedTuple):
    """`url`: of the forge or of its API. "" and 0 for what is not told."""

    forge: str = ""
    url: str = ""
    repository: str = ""
    number: int = 0


def surroundings(environment: Mapping[str, str]) -> PullRequestHints:
    told = environment.get
    if told("GITLAB_CI") == "true":
        # The pipeline of a merge request from a fork may run in the fork, which is not where the merge request is.
        repository = told("CI_MERGE_REQUEST_PROJECT_ID") or told("CI_PROJECT_ID", "")
        return PullRequestHints(
            GITLAB, told("CI_API_V4_URL", ""), repository, _number(told("CI_MERGE_REQUEST_IID", ""))
        )
    other = told("GITEA_ACTIONS") == "true" or told("FORGEJO_ACTIONS") == "true"
    if not other and told("GITHUB_ACTIONS") != "true":
        return PullRequestHints()
    pull = _PULL.fullmatch(told("GITHUB_REF", ""))
    url, repository = told("GITHUB_API_URL", ""), told("GITHUB_REPOSITORY", "")
    return PullRequestHints(GITEA if other else GITHUB, url, repository, _number(pull[1] if pull else ""))


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else 0
