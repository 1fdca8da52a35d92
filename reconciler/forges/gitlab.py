"""Comments on a merge request of GitLab, where they are called notes; and statuses of commits, which are jobs of a
pipeline there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from reconciler.forges.commitstatus import CommitStatus, said
from reconciler.forges.forge import Comment, ForgeUser, author, fields, integer, text
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest
from reconciler.forges.paging import listed

RIGHTS = "the scope `api` and the role Reporter in the project (a job's own CI_JOB_TOKEN may not comment)"

STATUS_RIGHTS = "the scope `api` and the role Developer in the project"


def api(url: str) -> str:
    """The API's URL of the forge at `url`, which may be that already; "": gitlab.com."""
    root = url.rstrip("/") or "https://gitlab.com"
    return root if root.endswith("/api/v4") else f"{root}/api/v4"


class GitLab:
    """`repository`: the project's number, or its path with all groups."""

    def __init__(self, client: ForgeClient, repository: str, number: int) -> None:
        self._client = client
        self._statuses = f"/projects/{quote(repository, safe='')}/statuses"
        self._notes = f"/projects/{quote(repository, safe='')}/merge_requests/{number}/notes"

    def me(self) -> ForgeUser:
        return author(self._client.ask(ForgeRequest("GET", "/user")).value, "username")

    def comments(self) -> Iterator[Comment]:
        """Without what GitLab itself notes (that somebody pushed)."""
        found = listed(self._client, self._notes, {"per_page": 100, "sort": "asc", "order_by": "created_at"})
        return (_comment(each) for each in found if not each.get("system"))

    def create(self, body: str) -> Comment:
        return _comment(fields(self._client.ask(ForgeRequest("POST", self._notes, body={"body": body})).value))

    def update(self, comment: Comment, body: str) -> Comment:
        request = ForgeRequest("PUT", f"{self._notes}/{comment.id}", body={"body": body})
        return _comment(fields(self._client.ask(request).value))

    def state(self, commit: str, status: CommitStatus) -> None:
        body = said(status, "success", "failed")
        self._client.ask(ForgeRequest("POST", f"{self._statuses}/{commit}", body=body, again=True))


def _comment(value: dict[str, Any]) -> Comment:
    return Comment(integer(value.get("id")), author(value.get("author"), "username"), text(value.get("body")))
