"""Who a token of GitHub is: a user, a workflow, or any other app. Where each API of GitHub is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.fakeforges import STRANGER, TOKEN, FakeGitHub, Said, User, serving

from reconciler.forges import gitea, github, gitlab
from reconciler.forges.errors import NotSaid
from reconciler.forges.forge import ForgeUser
from reconciler.forges.keeping import KeptAs, KeptComment, keep
from reconciler.forges.place import PullRequest

WORKFLOW = User(41898282, github.ACTIONS)


@pytest.fixture
def fake() -> Iterator[FakeGitHub]:
    with serving(FakeGitHub(user=WORKFLOW)) as found:
        assert isinstance(found, FakeGitHub)
        found.app = True
        yield found


def kept(fake: FakeGitHub, text: str, me: ForgeUser | None = None) -> KeptComment:
    return keep(PullRequest("github", fake.url, "shop/fleet", 12).spoken_to(TOKEN), "fleet", text, me)


def test_a_workflow_finds_its_comment(fake: FakeGitHub) -> None:
    fake.add(STRANGER, "<!-- treeplane diff fleet -->\nall is well")
    assert [kept(fake, text).kept for text in ("one", "one", "two")] == ["created", "unchanged", "configured"]
    assert len(fake.comments) == 2


def test_another_app_finds_its_own_and_not_the_workflows(fake: FakeGitHub) -> None:
    kept(fake, "one")
    fake.user = User(5, "fleet-app[bot]")
    assert kept(fake, "two").kept is KeptAs.CREATED
    assert kept(fake, "two").kept is KeptAs.UNCHANGED


@pytest.mark.parametrize(
    "closed",
    [Said(403, {}), Said(404, {}), Said(200, {"data": None, "errors": [{}]}), Said(200, []), Said(200, {"data": []})],
    ids=repr,
)
def test_without_graphql_an_app_is_the_workflows(fake: FakeGitHub, closed: Said) -> None:
    fake.graphql = closed
    assert [kept(fake, text).kept for text in ("one", "one")] == ["created", "unchanged"]


def test_an_app_that_is_taken_for_the_workflows_is_told_so(fake: FakeGitHub) -> None:
    fake.graphql, fake.user = Said(403, {}), User(5, "fleet-app[bot]")
    assert kept(fake, "one").stranger == "fleet-app[bot]"
    assert kept(fake, "one", ForgeUser(0, "Fleet-App[bot]")).kept is KeptAs.UNCHANGED


@pytest.mark.parametrize(
    ("dialect", "url", "api"),
    [
        (github, "", "https://api.github.com"),
        (github, "https://github.com/", "https://api.github.com"),
        (github, "https://api.github.com", "https://api.github.com"),
        (github, "https://api.shop.ghe.com", "https://api.shop.ghe.com"),
        (github, "https://git.shop.example", "https://git.shop.example/api"),
        (github, "https://git.shop.example/api/v3/", "https://git.shop.example/api"),
        (gitlab, "", "https://gitlab.com/api/v4"),
        (gitlab, "https://git.shop.example/gitlab/", "https://git.shop.example/gitlab/api/v4"),
        (gitlab, "https://git.shop.example/api/v4", "https://git.shop.example/api/v4"),
        (gitea, "https://git.shop.example", "https://git.shop.example/api/v1"),
        (gitea, "https://git.shop.example/api/v1/", "https://git.shop.example/api/v1"),
    ],
)
def test_where_the_api_is(dialect: object, url: str, api: str) -> None:
    assert dialect.api(url) == api  # type: ignore[attr-defined]


def test_a_gitea_is_nowhere_by_itself() -> None:
    with pytest.raises(NotSaid, match="anywhere"):
        gitea.api("")
