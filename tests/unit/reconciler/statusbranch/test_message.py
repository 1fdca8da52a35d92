"""What a status commit says of itself."""

from __future__ import annotations

import pytest

from reconciler.repository.difference import FileChange
from reconciler.repository.messages import one_line, with_trailers
from reconciler.repository.objects import TreeEntry
from reconciler.statusbranch.message import describe

WEB, API = "workspaces/root/shop/web", "workspaces/root/7f/api"
PATHS = {WEB: "root:shop:web", API: "root:api"}


def changed(path: str, *, old: bool = True, new: bool = True) -> FileChange:
    entry = TreeEntry("x", "1" * 40, "blob")
    return FileChange(path, entry if old else None, entry if new else None)


def status(name: str, at: str = WEB) -> str:
    return f"{at}/_status/default/deployments.apps/{name}.yaml"


@pytest.mark.parametrize(
    ("changes", "subject"),
    [
        ([], "Record the fleet"),
        ([changed("fleet.yaml")], "Record the fleet"),
        ([changed(status("web"))], "deployments.apps default/web configured in root:shop:web"),
        ([changed(status("web", API), old=False)], "deployments.apps default/web created in root:api"),
        ([changed(f"{WEB}/_summary.yaml", old=False)], "workspace root:shop:web created"),
        ([changed("schemas/1abc/v1.widgets/uid.yaml", new=False)], "schema v1.widgets deleted"),
        (
            [changed(status("a")), changed(status("b")), changed(status("c"), old=False), changed("fleet.yaml")],
            "2 objects configured, 1 object created in root:shop:web",
        ),
        (
            [changed(status("a")), changed(f"{WEB}/_summary.yaml")],
            "1 object configured in root:shop:web",
        ),
        (
            [changed(status("a")), changed(status("b", API), new=False)],
            "1 object configured, 1 object deleted in 2 workspaces: root:api, root:shop:web",
        ),
        (
            [changed(f"{WEB}/_summary.yaml", new=False), changed(f"{API}/_summary.yaml", new=False)],
            "2 workspaces deleted: root:api, root:shop:web",
        ),
        (
            [changed(f"{WEB}/_ending/_/widgets.example.io/w.yaml", old=False)],
            "widgets.example.io w created in root:shop:web",
        ),
        ([changed("workspaces/root/_summary.yaml")], "workspace root configured"),
    ],
)
def test_the_subject_says_what_changed_and_where(changes: list[FileChange], subject: str) -> None:
    assert describe(changes, PATHS)[0] == subject


def test_the_body_names_what_the_subject_counts_up_to_a_bound() -> None:
    found = describe([changed(status(f"d{n}")) for n in range(70)], PATHS)
    assert found[0] == "70 objects configured in root:shop:web"
    assert found[1][0] == "deployments.apps default/d0 configured in root:shop:web"
    assert found[1][49:] == ["deployments.apps default/d49 configured in root:shop:web", "and 20 more"]


def test_a_subject_is_short_whatever_it_counts() -> None:
    many = [changed(status("a", f"workspaces/root/w{n}")) for n in range(1000)]
    subject, body = describe(many, {})
    assert subject.startswith("1000 objects configured in 1000 workspaces: root:w0, root:w1,")
    assert len(subject) == 100
    assert len(body) == 51


def test_a_name_cannot_say_what_only_the_server_says() -> None:
    name = "x\n\nWriter: somebody/1\u2028Epoch: 9"
    subject, body = describe([changed(f"{WEB}/_status/_/clusterroles.rbac.authorization.k8s.io/{name}.yaml")], PATHS)
    message = with_trailers(subject, body, {"Source-Commit": "1" * 40})
    assert message.splitlines()[1:] == ["", f"Source-Commit: {'1' * 40}"]
    assert one_line("a\r\n\tb\x00c") == "a b c"
