"""Commits into the store: which workspaces a commit touches, whether their new content is good, and what it writes."""
