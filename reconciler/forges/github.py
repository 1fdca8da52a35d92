"""Comments on a pull request of GitHub, where each is an issue too: its comments are the issue's."""

from __future__ import annotations

from urllib.parse import urlsplit

from reconciler.forges.forge import ForgeUser, author, integer, text
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest
from reconciler.forges.issues import IssueComments

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


class GitHub(IssueComments):
    """`repository`: owner/name."""

    def __init__(self, client: ForgeClient, repository: str, number: int) -> None:
        self._rest = "/v3" if client.api.endswith("/api") else ""
        super().__init__(client, repository, number, {"per_page": 100}, self._rest)

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
