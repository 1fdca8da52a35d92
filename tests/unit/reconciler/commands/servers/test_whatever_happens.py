"""Histories of several servers on one repository: starts, crashes, cuts from the source, copied and lost data
directories, take-overs. One writes at a time, nothing recorded is lost, and observers show what was written."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.serverworlds import World, recovered, settle

EVENTS = ["start", "take over", "kill", "stop", "cut", "join", "copy", "lose", "decide", "tick", "push", "vandal"]
EVENTS += ["keep", "restore", "back up", "recover", "forge goes back"]
History = list[tuple[str, int, int]]
histories = st.lists(
    st.tuples(st.sampled_from([*EVENTS, "start", "decide", "decide", "tick"]), st.integers(0, 2), st.integers(0, 2)),
    max_size=16,
)


@pytest.mark.parametrize("remote", [False, True], ids=["this machine", "url"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(servers=st.integers(2, 3), history=histories)
def test_whatever_happens_one_writes_and_all_show_the_same(
    tmp_path_factory: pytest.TempPathFactory, remote: bool, servers: int, history: History
) -> None:
    world = World(tmp_path_factory.mktemp("servers"), remote=remote, servers=servers)
    try:
        for event in [("start", 0, 0), *history]:
            world.do(*event)
            world.check()
        settle(world)
        world.check()
        holders = [server for server in world.servers if server.holds]
        assert len(holders) <= 1
        fresh = recovered(world)
        for server in world.servers:
            if server.alive and not server.holds:
                assert server.objects() == fresh
    finally:
        world.close()
