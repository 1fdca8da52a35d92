"""The only reader of the repository layout: a commit's tree → workspaces and manifests, each with file and line."""
