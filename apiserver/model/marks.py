"""Annotations and labels that Treeplane sets, and the field managers it uses. One list, so that none is misspelled."""

from __future__ import annotations

SOURCE_PATH = "treeplane.dev/source-path"
"""The file of the repository that declares the object."""
SOURCE_COMMIT = "treeplane.dev/source-commit"
"""The commit that last changed the object's content."""
ORIGIN = "treeplane.dev/origin"
"""`runtime`: created through the API or by a controller; `system`: ships with Treeplane; `removed`: a commit took it
away, and it waits for its finalizers; absent: declared by git."""
RUNTIME = "runtime"
SYSTEM = "system"
REMOVED = "removed"
COMMIT_LABEL = "treeplane.dev/commit"

CLUSTER = "kcp.io/cluster"
"""Logical cluster name, on every object served."""
PATH = "kcp.io/path"

TARGET_KEY = "internal.workload.kcp.io/key"
"""Label on a SyncTarget: the key by which everything else names it."""

FIELD_MANAGER = "treeplane"
