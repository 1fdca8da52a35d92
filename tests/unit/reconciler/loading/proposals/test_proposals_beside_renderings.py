"""Proposals in a workspace of which some is rendered: that is not written to, all else is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.loadedfleet import A, configmap
from support.proposalfleet import WRITES_PROPOSE, ProposalFleet

from apiserver.model.errors import StatusError

K = f"{A}/k"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[ProposalFleet]:
    made = ProposalFleet(tmp_path / "fleet", renders=FakeRenders())
    files = {f"{K}/kustomization.yaml": "resources: [x.yaml]\n", f"{K}/x.yaml": configmap("x", v="1")}
    made.begin({"treeplane.yaml": WRITES_PROPOSE, **files})
    assert made.held() == {}
    made.serve()
    yield made
    made.close()


def test_what_is_rendered_is_refused_with_the_directory(fleet: ProposalFleet) -> None:
    with pytest.raises(StatusError, match=f"it is rendered of {K}: change the files") as e:
        fleet.patched("root:a", "configmaps", "x", data={"v": "2"})
    assert e.value.code == 403
    assert fleet.branches_there() == []


def test_all_else_is_proposed(fleet: ProposalFleet) -> None:
    fleet.patched("root:a", "configmaps", "app", data={"a": "c"})
    assert fleet.proposed() == {f"{A}/app.yaml": configmap(a="c")}
