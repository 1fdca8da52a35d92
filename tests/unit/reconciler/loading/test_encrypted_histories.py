"""Keys come and go, files change and are tampered with, servers start anew and lose all they had: what is served
follows from what there is, and a recovery with the same keys finds the same."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import A, LoadedFleet, configmap
from support.recoveries import assert_same
from support.sealing import AgeKey, encrypted, secret

KEY, OTHER = AgeKey(), AgeKey()
FILE = f"{A}/secret.yaml"
GOOD = {number: encrypted(secret(password=f"value-{number}"), KEY) for number in range(3)}
TAMPERED = GOOD[0].replace("name: app", "name: app\n  labels: {by: hand}")

STEPS = ("good", "good", "tamper", "for others", "remove", "beside", "give", "give", "give other", "take", "publish")
SERVERS = ("restart", "lose")
HISTORIES = st.lists(st.tuples(st.sampled_from(STEPS + SERVERS), st.integers(0, 2)), min_size=1, max_size=12)


@dataclass
class Sealing:
    """The fleet that runs, and what it should serve. `file`: what stands in git: the number of a value, "bad", "others"
    or None; `key`: which one there is; `served`: the number of the value; `found_out`: whether a key found that the
    file is bad."""

    folder: object
    made: list[LoadedFleet] = field(default_factory=list)
    file: int | str | None = None
    key: AgeKey | None = None
    served: int | None = None
    found_out: bool = False

    @property
    def fleet(self) -> LoadedFleet:
        return self.made[-1]

    def begin(self) -> None:
        self.made.append(LoadedFleet(self.folder / "fleet"))  # type: ignore[operator]
        self.fleet.begin()
        self.fleet.publish()

    def happen(self, name: str, number: int) -> None:
        if name == "good":
            self._commit(GOOD[number], number)
        elif name == "tamper":
            self._commit(TAMPERED, "bad")
        elif name == "for others":
            self._commit(encrypted(secret(password="theirs"), OTHER), "others")
        elif name == "remove":
            self._commit(None, None)
        elif name == "beside":
            self.fleet.commit({f"{A}/app.yaml": configmap(a=str(number))})
        elif name in ("give", "give other", "take"):
            self._key({"give": KEY, "give other": AgeKey(), "take": None}[name])
        elif name == "publish":
            self.fleet.publish()
        elif name == "restart":
            self.fleet.loader = self.fleet.new_loader()
            self.fleet.load()
        else:
            self.fleet.publish()
            self.made.append(self.recovered())
            self.served = None
        self._settle()

    def recovered(self) -> LoadedFleet:
        first = self.made[0]
        new = LoadedFleet(self.folder / f"n{len(self.made)}", repo=first.repo, keys=first.keys)  # type: ignore[operator]
        new.load(new.recorded())
        new.recheck(new.secrets.not_served(new.store))  # as every start does
        return new

    def _commit(self, text: str | None, file: int | str | None) -> None:
        if text is not None or self.file is not None:
            self.fleet.commit({FILE: text})
        self.file = file

    def _key(self, key: AgeKey | None) -> None:
        place = self.fleet.keys / "age" / "root:a"
        if key is not None:
            key.write(place)
        else:
            place.unlink(missing_ok=True)
        self.key = key
        self.fleet.recheck(self.fleet.secrets.changed())

    def _settle(self) -> None:
        if self.file is None:
            self.served = None
        elif isinstance(self.file, int) and self.key is KEY:
            self.served = self.file
        self.found_out = self.file == "bad" and (self.found_out or self.key is KEY)

    def check(self) -> None:
        found = self.fleet.find("root:a", "secrets", "app")
        said = base64.b64decode(found["data"]["password"]).decode() if found else None
        lost = self.file == "bad" and len(self.made) > 1  # of what was served before, a recovery knows by its commit
        assert lost or said == (f"value-{self.served}" if self.served is not None else None)
        assert ("root:a" in self.fleet.held()) == self.found_out
        applied = self.fleet.condition(self.fleet.workspace("root:a"), "CommitApplied")
        locked = self.file is not None and not self.found_out and not (self.key is KEY and self.file != "others")
        assert (applied["reason"] == "SecretsLocked") == locked, applied


@contextmanager
def sealing(factory: pytest.TempPathFactory) -> Iterator[Sealing]:
    found = Sealing(factory.mktemp("sealing"))
    try:
        found.begin()
        yield found
    finally:
        for each in found.made:
            each.close()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES)
@example(history=[("good", 1), ("tamper", 0), ("give", 0), ("lose", 0), ("good", 2)])
@example(history=[("give", 0), ("good", 1), ("take", 0), ("good", 2), ("lose", 0), ("give", 0)])
@example(history=[("give", 0), ("good", 1), ("tamper", 0), ("lose", 0), ("take", 0), ("beside", 1)])
def test_what_is_served_follows_from_files_and_keys(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int]]
) -> None:
    with sealing(tmp_path_factory) as found:
        for name, number in history:
            found.happen(name, number)
            found.check()
        found.happen("give", 0)
        found.check()
        if found.file in ("others", "bad"):
            found.happen("good", 0)
            found.check()
        found.happen("beside", 3)
        found.fleet.publish()
        new = found.recovered()
        found.made.insert(0, new)
        assert_same(new, found.fleet)
        assert new.writer().flush() is None
