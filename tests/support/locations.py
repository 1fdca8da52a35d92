"""Files that declare where workspaces may run: for tests that add a cluster to a fleet."""

from __future__ import annotations


def location(name: str, region: str, labels: str = "") -> str:
    """A Location of the sync targets of a region. `labels`: by which placements choose it; without any, its region."""
    return f"""apiVersion: scheduling.kcp.io/v1alpha1
kind: Location
metadata: {{name: {name}, labels: {{{labels or f"region: {region}"}}}}}
spec:
  resource: {{group: workload.kcp.io, version: v1alpha1, resource: synctargets}}
  instanceSelector: {{matchLabels: {{region: {region}}}}}
"""
