"""Workspaces as commits have them, made for API workers that are asked for one (`/commits/…`)."""
