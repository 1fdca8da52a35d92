"""Who is told of commits outside, as the server's settings say it: the wiring of commit statuses and the webhook.

Called by loops. Where tokens go is the settings' alone to say (forgeplaces): nothing in git names an address. Tokens
are files of `keys/forges/`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from apiserver.registry import announced
from apiserver.storage.protocol import Store
from reconciler.commands.forgeplaces import place_of
from reconciler.commands.settings import ReconcileSettings, Reconciling
from reconciler.controllers.announcements import Announcements, Announcer
from reconciler.controllers.commithook import CommitHook
from reconciler.controllers.commitstatuses import CommitStatuses
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import Manager
from reconciler.forges.commitstatus import StatusForge
from reconciler.forges.keyfile import KeyFile
from reconciler.forges.notification import Notified
from reconciler.forges.wire import ForgePatience

FOLDER = "forges"
TOKEN, SECRET = "token", "webhook-secret"
_PATIENCE = ForgePatience(tries=1, quiet=10.0, whole=30.0, size=1024 * 1024)
"""Who tells tries again by itself."""
_LAST = 1.0
"""Seconds at the end for who does not answer."""


class Announcing:
    """`start`, `stop`; of nobody where the settings name nobody."""

    def __init__(self, settings: ReconcileSettings, store: Store, feed: Feed, told: Callable[[str], None]) -> None:
        found = _announcers(settings, settings.keys_dir)
        self._store, self._who = store, [who for who, _ in found]
        self._controllers = [Announcements(who, store, each, told) for who, each in found]
        self._managers = [Manager(each.name, [each], feed) for each in self._controllers]

    def start(self) -> None:
        gone = announced.not_told(self._store, self._who)
        if gone:
            self._store.write(*gone)
        for manager in self._managers:
            manager.start()

    def stop(self) -> None:
        """What is being said may be said to its end; it does not touch the store any more."""
        for controller in self._controllers:
            controller.end()
        for manager in self._managers:
            manager.stop(_LAST)


def _announcers(settings: Reconciling, keys: Path) -> list[tuple[str, Announcer]]:
    out: list[tuple[str, Announcer]] = []
    if settings.forge:
        place, token = place_of(settings), _key(keys, TOKEN)

        def speak() -> StatusForge:
            return place.spoken_to(token.read(), _PATIENCE)

        out.append(("forge", CommitStatuses(speak, settings.forge_target_url)))
    if settings.notify_url:
        secret = _key(keys, SECRET)
        out.append(("webhook", CommitHook(Notified(settings.notify_url, _PATIENCE), secret.read)))
    return out


def _key(keys: Path, name: str) -> KeyFile:
    return KeyFile(keys / FOLDER / name, f"keys/{FOLDER}/{name}")
