"""Which pull request is meant: what somebody says, and what CI says."""

from __future__ import annotations

import pytest

from reconciler.forges.errors import NotSaid
from reconciler.forges.place import PullRequest, located
from reconciler.forges.surroundings import PullRequestHints, surroundings

GITHUB = {
    "GITHUB_ACTIONS": "true",
    "GITHUB_API_URL": "https://api.github.com",
    "GITHUB_REPOSITORY": "shop/fleet",
    "GITHUB_REF": "refs/pull/12/merge",
}
GITEA = {
    **GITHUB,
    "GITEA_ACTIONS": "true",
    "GITHUB_API_URL": "https://git.example.org/api/v1",
    "GITHUB_REF": "refs/pull/12/head",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_API_V4_URL": "https://gitlab.com/api/v4",
    "CI_PROJECT_ID": "77",
    "CI_MERGE_REQUEST_IID": "12",
}


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        (GITHUB, PullRequest("github", "https://api.github.com", "shop/fleet", 12)),
        (GITEA, PullRequest("gitea", "https://git.example.org/api/v1", "shop/fleet", 12)),
        ({**GITHUB, "FORGEJO_ACTIONS": "true"}, PullRequest("gitea", "https://api.github.com", "shop/fleet", 12)),
        (GITLAB, PullRequest("gitlab", "https://gitlab.com/api/v4", "77", 12)),
        ({**GITLAB, "CI_MERGE_REQUEST_PROJECT_ID": "5"}, PullRequest("gitlab", "https://gitlab.com/api/v4", "5", 12)),
    ],
)
def test_what_ci_tells(environment: dict[str, str], found: PullRequest) -> None:
    assert located(PullRequestHints(), surroundings(environment)) == found


def test_what_somebody_says_goes_before() -> None:
    said = PullRequestHints("github", "https://git.shop.example", "a/b", 3)
    assert located(said, surroundings(GITHUB)) == PullRequest(*said)


def test_what_ci_tells_of_another_forge_does_not_count() -> None:
    with pytest.raises(NotSaid, match="which repository"):
        located(PullRequestHints("gitlab"), surroundings(GITHUB))
    assert located(PullRequestHints("gitlab", "", "a/b/c", 3), surroundings(GITHUB)).url == ""


def test_a_number_is_one_of_its_repository() -> None:
    with pytest.raises(NotSaid, match="which pull request"):
        located(PullRequestHints(repository="another/fleet"), surroundings(GITHUB))


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (PullRequestHints(), "which forge"),
        (PullRequestHints("bitbucket"), "which forge"),
        (PullRequestHints("github"), "which repository"),
        (PullRequestHints("github", "", "a/b"), "which pull request"),
        (PullRequestHints("github", "", "a/b", -1), "which pull request"),
        *(
            (PullRequestHints("github", "", name, 1), "no repository")
            for name in ("a", "a/b/c", "a/..", "../b", "a/b?", "a/b\n")
        ),
        *(
            (PullRequestHints("gitlab", "", name, 1), "no repository")
            for name in ("a", "a/../b", "a/b/", "a/%2e", "1x")
        ),
    ],
)
def test_what_is_missing_or_cannot_be(said: PullRequestHints, text: str) -> None:
    with pytest.raises(NotSaid, match=text):
        located(said, PullRequestHints())


@pytest.mark.parametrize(
    "ref", ["refs/heads/main", "refs/pull/x/merge", "refs/pull/12/merge\n", "refs/pull/1234567890/head"]
)
def test_a_ref_that_is_no_pull_request(ref: str) -> None:
    assert surroundings({**GITHUB, "GITHUB_REF": ref}).number == 0


def test_how_a_pull_request_is_called() -> None:
    assert str(PullRequest("github", "", "shop/fleet", 12)) == "shop/fleet#12"
    assert str(PullRequest("gitlab", "", "shop/fleet", 12)) == "shop/fleet!12"
