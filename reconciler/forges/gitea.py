"""Comments on a pull request of Gitea, and of Forgejo, which has the same API: its comments are an issue's. And
statuses of commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconciler.forges.commitstatus import CommitStatus, said
from reconciler.forges.errors import NotSaid
from reconciler.forges.forge import Comment, ForgeUser, author, fields, integer, text
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest
from reconciler.forges.paging import listed

RIGHTS = "the scopes `write:issue` and `read:user`, and to see the repository"
STATUS_RIGHTS = "the scope `write:repository`, and to write to the repository"


def api(url: str) -> str:
    """The API's URL of the forge at `url`, which may be that already. Raises NotSaid for ""."""
    root = url.rstrip("/")
    if not root:
        raise NotSaid("a Gitea may be anywhere", "say where with --url https://git.example.org")
    return root if root.endswith("/api/v1") else f"{root}/api/v1"


class Gitea:
    """`repository`: owner/name."""

    def __init__(self, client: ForgeClient, repository: str, number: int) -> None:
        self._client = client
        self._statuses = f"/repos/{repository}/statuses"
        self._issues = f"/repos/{repository}/issues"
        self._comments = f"{self._issues}/{number}/comments"

    def me(self) -> ForgeUser:
        return author(self._client.ask(ForgeRequest("GET", "/user")).value, "login")

    def comments(self) -> Iterator[Comment]:
        """Gitea answers with all at once; a page's number does no harm."""
        return map(_comment, listed(self._client, self._comments, {"limit": 50}))

    def create(self, body: str) -> Comment:
        return _comment(fields(self._client.ask(ForgeRequest("POST", self._comments, body={"body": body})).value))

    def update(self, comment: Comment, body: str) -> Comment:
        path = f"{self._issues}/comments/{comment.id}"
        return _comment(fields(self._client.ask(ForgeRequest("PATCH", path, body={"body": body})).value))

    def state(self, commit: str, status: CommitStatus) -> None:
        body = said(status, "success", "failure")
        self._client.ask(ForgeRequest("POST", f"{self._statuses}/{commit}", body=body, again=True))


def _comment(value: dict[str, Any]) -> Comment:
    who = author(value.get("user"), "login")
    return Comment(integer(value.get("id")), who, text(value.get("body")), text(value.get("html_url")))
