"""How the branch that is served may move, and who is believed who pushed to it: from the settings of `treeplane up`.

Called by the holder. What comes of it is reconciler/loading's.
"""

from __future__ import annotations

from pathlib import Path

from reconciler.commands.again import again
from reconciler.commands.settings import ReconcileSettings
from reconciler.loading.heads import FOLLOW, HOLD, BranchSettings
from reconciler.loading.vouching import Vouching
from reconciler.repository.mirror import Mirror
from reconciler.repository.pushrecords import PushRecords
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import DIRECTORY
from reconciler.signatures.verifier import Verifier


def vouching_of(settings: ReconcileSettings, mirror: Mirror, hosted: Path | None, key: CommitKey) -> Vouching:
    """Whoever commits in a work tree on this machine is taken for who runs the server: its files are his."""
    return Vouching(
        PushRecords(hosted),
        Verifier(key),
        settings.keys_dir / DIRECTORY,
        local=not mirror.is_remote and hosted is None and (Path(settings.source) / ".git").exists(),
    )


def settings_of(settings: ReconcileSettings, mirror: Mirror, vouching: Vouching) -> BranchSettings:
    """A branch on this machine is amended daily; one behind a URL may be a replica that lags."""
    return BranchSettings(
        name=settings.branch,
        url=settings.url,
        rewrites=HOLD if mirror.is_remote else FOLLOW,
        take=settings.take_head,
        command=lambda head: again(settings.command, "--take-head", head),
        keep=mirror.keep,
        status=settings.status_repository,
        most_objects=settings.most_objects,
        vouching=vouching,
    )
