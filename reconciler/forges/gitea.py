"""Comments on a pull request of Gitea, and of Forgejo, which has the same API: its comments are an issue's. And
statuses of commits."""

from __future__ import annotations

from reconciler.forges.errors import NotSaid
from reconciler.forges.forge import ForgeUser, author
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest
from reconciler.forges.issues import IssueComments

RIGHTS = "the scopes `write:issue` and `read:user`, and to see the repository"
STATUS_RIGHTS = "the scope `write:repository`, and to write to the repository"


def api(url: str) -> str:
    """The API's URL of the forge at `url`, which may be that already. Raises NotSaid for ""."""
    root = url.rstrip("/")
    if not root:
        raise NotSaid("a Gitea may be anywhere", "say where with --url https://git.example.org")
    return root if root.endswith("/api/v1") else f"{root}/api/v1"


class Gitea(IssueComments):
    """`repository`: owner/name. It answers with all comments at once; a page's number does no harm."""

    def __init__(self, client: ForgeClient, repository: str, number: int) -> None:
        super().__init__(client, repository, number, {"limit": 50})

    def me(self) -> ForgeUser:
        return author(self._client.ask(ForgeRequest("GET", "/user")).value, "login")
