"""Files that a command writes: manifests into the fleet's repository, as one commit, and secrets into `keys/`.

Called by commands that do somebody's job in files (`treeplane grant`, say). `desk` is where they begin; whose word the
files are is not asked here: what git, or the server's answer to a push, says is the answer.
"""
