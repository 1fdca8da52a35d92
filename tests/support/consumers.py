"""Workspaces that take an export by their type, so that one commit brings as many as one likes."""

from __future__ import annotations

CONSUMER = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: consumer, path: root}}\n"
"""The workspace.yaml of each."""


def consumer_type(provider: str, export: str) -> str:
    """Their type, of root. Their writes go to the store."""
    return f"""\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {{name: consumer}}
spec:
  extend: {{with: [{{name: universal, path: root}}]}}
  writes: Store
  defaultAPIBindings: [{{path: "{provider}", export: {export}}}]
"""
