"""Where things stand on the status branch."""

from __future__ import annotations

import pytest

from apiserver.model.keys import Key
from reconciler.statusbranch import format


def test_text_survives_as_it_is() -> None:
    status = {"message": "Grüße: 'x' # no\nsecond line", "yes": "yes", "number": "1e3", "long": "word " * 60}
    assert format.load(format.dump({"status": status})) == {"status": status}


@pytest.mark.parametrize(
    ("key", "path"),
    [
        (Key("deployments.apps", "c", "shop", "web"), "d/_status/shop/deployments.apps/web.yaml"),
        (Key("widgets.example.io:9f86", "c", "shop", "w"), "d/_status/shop/widgets.example.io/w.yaml"),
        (Key("placements.scheduling.kcp.io", "c", "", "p"), "d/_status/_/placements.scheduling.kcp.io/p.yaml"),
    ],
)
def test_where_a_status_stands(key: Key, path: str) -> None:
    assert format.status_path("d", key) == path
    assert format.ending_path("d", key) == path.replace("_status", "_ending")


def test_where_a_workspace_stands() -> None:
    assert format.directory_of("root:shop:web", "workspaces/root/7f/shop/web") == "workspaces/root/7f/shop/web"
    assert format.directory_of("root:compute", "") == "workspaces/root/compute"
