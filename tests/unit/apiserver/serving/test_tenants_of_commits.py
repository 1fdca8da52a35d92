"""Where writes are commits of one repository, its tenants learn as little of each other, and change as little.

As test_tenants, but that what is made says of which commit it is: commits are told by their ids, and of all tenants.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from support.ground import Ground, World, drawn_alike, normal
from support.guesses import Known
from support.hostilewrites import each_once
from support.siege import leaked, text_of
from support.tenancy import Sent, bearer
from support.tenants import ANN, BEES

from apiserver.model.keys import Key

MADE = "/clusters/root:ann:made"


def of_bea(world: World) -> tuple[dict[Key, bytes], dict[str, str]]:
    """Her objects, and her files."""
    objects = {key: value for key, value in world.bees().items() if isinstance(key, Key)}
    return objects, {path: text for path, text in world.tree().items() if path.startswith(BEES)}


def test_whatever_of_beas_ann_names_nothing_comes_of_it(tmp_path: Path) -> None:
    ground = Ground(tmp_path, "Commit")
    known, worlds = Known.of(ground, shared=False), ground.pair(False)
    before, head, said = of_bea(worlds[0]), worlds[0].repo.head, ""
    headers, statuses = (bearer(ANN), ("Content-Type", "application/json")), Counter[int]()
    for number, (rest, obj) in enumerate(each_once(known)):
        sent = Sent("POST", MADE + rest, "", headers, json.dumps(obj).encode())
        said += text_of(sent)
        with drawn_alike(number):
            first, second = (world.send(sent) for world in worlds)
        assert leaked(first, known.foreign, said) == set(), sent
        assert first.status == second.status
        assert first.status < 300 or normal(first) == normal(second)
        statuses[first.status] += 1
    for world in worlds:
        world.settle()
    assert leaked(worlds[0].send(Sent(path=f"{MADE}/apis/tenancy.kcp.io/v1alpha1/workspaces", headers=headers)),
                  known.foreign, said) == set()  # fmt: skip
    assert of_bea(worlds[0]) == before
    assert statuses[201] > 50 and statuses[403] > 50 and worlds[0].repo.head != head
    for world in worlds:
        world.close()
