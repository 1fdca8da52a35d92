"""What stands in the store beside its objects: tables of rows, which nobody watches.

A row is bytes under a key, read and compared with what stood there before; it has no revision, and no log tells of it.
So what is written often and looked up alone belongs here (how far a workspace or a controller is, who holds a role),
and what somebody follows is an object (keys.py). Rows and objects change in one transaction.

This list is all there are: a store is asked for no other.
"""

from __future__ import annotations

from enum import StrEnum


class Table(StrEnum):
    """The values are what stores keep, so a table that is renamed is another one."""

    WORKSPACES = "workspaces"
    """<workspace path> → its record, and what the status branch's summary of it says (registry/tree.py)."""

    HELD = "held"
    """<workspace path> → nothing: its newest content is held back, as its record says."""

    LEAVING = "leaving"
    """<workspace path> → nothing: a commit took it away, and something in it waits for finalizers."""

    SOURCED = "sourced"
    """<workspace path> → nothing, of one whose content comes from another repository, or is to."""

    PINNED = "pinned"
    """<workspace path> → when the pin is over by which it was judged last, in seconds since 1970; of one that ever
    is."""

    UNTOLD = "untold"
    """<workspace path> → nothing: it offers something else, and who takes that is still to hear of it
    (reconciler/loading/untold.py)."""

    VACATED = "vacated"
    """<workspace path> → what is known of who may have workspaces there and below, of one that left and has gone: they
    are still to be judged (reconciler/loading/vacated.py)."""

    FLEET = "fleet"
    """`record` → what is being loaded and served; `troubles` → what is wrong with it as a whole (registry/tree.py);
    `lags` → how far behind workspaces are that are held (registry/lags.py); `recorded` → up to where nothing is left to
    be said that the newest status commit does not say (statusbranch/covered.py)."""

    CONSUMERS = "consumers"
    """<provider's path>, <export>, <consumer's path> → nothing: who is looked at again when an export changes."""

    PROVIDERS = "providers"
    """<consumer's path> → [[provider's path, export], …] under which CONSUMERS has it (loading/consumers.py)."""

    TYPED = "typed"
    """<type>, <workspace path> → nothing: a workspace that was made through the API, and follows that type."""

    KEPT_SECRETS = "keptsecrets"
    """<logical cluster> → digest of what keys/secrets/ held for the workspace when its Secrets were served last."""

    AGE_KEYS = "agekeys"
    """<logical cluster> → digest of the keys of keys/age/ with which the workspace's encrypted files were read last; no
    row where there were none."""

    RENDERINGS = "renderings"
    """<logical cluster> → with which programs what the workspace has rendered was made, of what else than its
    directories, and whether something could not be rendered just now (reconciler/loading/feeds.py); no row where
    nothing is rendered."""

    CHECKPOINTS = "checkpoints"
    """<who follows the log> → the revision that he is past (storage/protocol.py, `checkpoint`). The store itself reads
    it: the log keeps what the slowest needs. Who is followed no more takes his away."""

    NODE_PORTS = "nodeports"
    """<logical cluster>, <port> → [namespace, name] of the Service that holds the port."""

    GONE_NAMESPACES = "gonenamespaces"
    """<logical cluster>, <name> of a namespace that went, while something in it waits for finalizers → the revision at
    which it did."""

    ROLES = "roles"
    """<role> → the token of who has it (storage/roles.py): another one for each who took it, never for one who goes
    on. What clears a store leaves it."""

    TENURE = "tenure"
    """What a server's processes tell each other while one loads and another does the rest: as whom it holds the fleet
    (commands/tenure.py), whether a commit is on its way (statusbranch/between.py)."""

    STANDINGS = "standings"
    """<logical cluster>, <Placement> → the decision that syncing goes by (controllers/standings.py)."""

    RENEWAL = "renewal"
    """How far what ships with another version of Treeplane is written (reconciler/loading/renewal.py)."""

    OUTCOMES = "outcomes"
    """`noted` → the commit up to which outcomes were noted; `told`, <commit>, <who> → what was said of it last;
    `fails`, <who> → why nothing can be said just now, or nothing (registry/announced.py)."""

    PUSHERS = "pushers"
    """`of`, <commit> → who is known to have pushed it; `nth`, <number> → the commit that was noted as that one; `next`
    → the number that is free (reconciler/statusbranch/pushers.py)."""

    LOOKS = "looks"
    """`~away`, `~waiting` → that the fleet's repository does not answer, or has what is not served yet; `~fleet`,
    <logical cluster> → what was found when somebody asked to have it, or the workspace's source, looked at
    (registry/looks.py)."""

    APPOINTMENTS = "appointments"
    """<controller>, <minute>, <key> → when the controller looks at the key again."""


def row_key(*parts: str) -> str:
    """The key of several parts. Rows stand in the order of their parts; with "" as the last part it is the prefix of
    all rows that begin with the others."""
    return "\0".join(parts)
