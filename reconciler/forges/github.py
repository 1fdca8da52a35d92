"""Comments on a pull request of GitHub, where each is an issue too: its comments are the issue's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from reconciler.forges.commitstatus import CommitStatus, said
from reconciler.forges.forge import Comment, ForgeUser, author, fields, integer, text
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest
from reconciler.forges.paging import listed

RIGHTS = "`pull-requests: write` (in a workflow's `permissions`), or that right on the repository"
STATUS_RIGHTS = "`statuses: write`, or to write to the repository"
ACTIONS = "github-actions[bot]"
"""Who the token of a workflow is. Nobody's account can have brackets in its name."""

_VIEWER = {"query": "query { viewer { login databaseId } }"}


def api(url: str) -> str:
    """Where the APIs are (REST and GraphQL) of the forge at `url`, which may be REST's URL already; "": github.com."""
    root = url.rstrip("/").removesuffix("/v3")
    host = urlsplit(root).hostname or ""
    if not root or host in ("github.com", "www.github.com"):
        return "https://api.github.com"
    return root if host.startswith("api.") or root.endswith("/api") else f"{root}/api"


class GitHub:
    """`repository`: owner/name."""

    def __init__(self, client: ForgeClient, repository: str, number: int) -> None:
        self._client = client
        self._rest = "/v3" if client.api.endswith("/api") else ""
        self._statuses = f"{self._rest}/repos/{repository}/statuses"
        self._issues = f"{self._rest}/repos/{repository}/issues"
        self._comments = f"{self._issues}/{number}/comments"

    def me(self) -> ForgeUser:
        """An app, as a workflow's token is one, may not ask for its user. GraphQL tells an app, too; where that is
        closed, it is the app of the workflows."""
        answer = self._client.ask(ForgeRequest("GET", f"{self._rest}/user", told=(403,)))
        if answer.status != 403:
            return author(answer.value, "login")
        value = self._client.ask(ForgeRequest("POST", "/graphql", body=_VIEWER, told=(401, 403, 404))).value
        data = value.get("data") if isinstance(value, dict) else None
        viewer = data.get("viewer") if isinstance(data, dict) else None
        if not isinstance(viewer, dict) or not text(viewer.get("login")):
            return ForgeUser(0, ACTIONS)
        return ForgeUser(integer(viewer.get("databaseId")), text(viewer.get("login")))

    def comments(self) -> Iterator[Comment]:
        return map(_comment, listed(self._client, self._comments, {"per_page": 100}))

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
