"""What RBAC calls the repository that this server hosts, and the verb by which it says who may push what there.

Asked for by whoever serves it, by whoever judges what was pushed to it, and by the start, which knows its address.
"""

URL = "/git/fleet.git"
VERB = "push"
