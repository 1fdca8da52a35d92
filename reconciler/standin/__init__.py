"""The stand-in for kubelet and controllers in an embedded sync target: it makes workloads become ready.

An embedded target is a store that takes all writes; nothing runs in it. What a real cluster's controllers would write
into it, this package writes: pods of workloads, their status, the end of Jobs, garbage collection, namespaces that go
with their content. It works on the target's store directly, in one thread of the reconciler's process, and writes
nothing where nothing changed.
"""

from reconciler.standin.loop import StandIn

__all__ = ["StandIn"]
