"""What a scrape of /metrics answers: the numbers that all processes have written (apiserver/metrics), and what the
store and the machine say when somebody asks, which so is never stale and goes with no process.

Called by the shell, which has asked RBAC. What is read here costs the same however large the fleet is, but for sync
targets, which are few.
"""
