"""The repository that a server hosts: what RBAC calls it, the verb by which that says who may push what there, and
where it is.

Asked for by whoever serves it, by whoever judges what was pushed to it, by the start, which knows its address, and by
the commands that look at a data directory.
"""

URL = "/git/fleet.git"
VERB = "push"
PLACE = "repo/fleet.git"
"""Below the data directory."""
