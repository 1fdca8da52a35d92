"""Comments and statuses where a pull request's comments are an issue's: GitHub's API, and Gitea's, made after it.

Called by both. Who the token is each asks in its own way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.forges.commitstatus import CommitStatus, said
from reconciler.forges.forge import Comment, author, fields, integer, text
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest
from reconciler.forges.paging import listed


class IssueComments:
    """`root`: what paths begin with; `repository`: owner/name; `page`: the parameter that says how many a page has."""

    def __init__(
        self, client: ForgeClient, repository: str, number: int, page: Mapping[str, int], root: str = ""
    ) -> None:
        self._client, self._page = client, page
        self._statuses = f"{root}/repos/{repository}/statuses"
        self._issues = f"{root}/repos/{repository}/issues"
        self._comments = f"{self._issues}/{number}/comments"

    def comments(self) -> Iterator[Comment]:
        return map(_comment, listed(self._client, self._comments, dict(self._page)))

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
