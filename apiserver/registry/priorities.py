"""The PriorityClasses that every cluster has, and what a Pod without one counts as."""

from __future__ import annotations

SYSTEM = {
    "system-cluster-critical": (2000000000, "For Pods that a cluster cannot do without, on whichever node."),
    "system-node-critical": (2000001000, "For Pods that their node cannot do without."),
}
"""Value and description by name."""

PREEMPT = "PreemptLowerPriority"
DEFAULT = 0
