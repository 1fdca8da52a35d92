"""What is wrong now, found in the store and on this machine: one gatherer, for the endpoint /status and for `treeplane
status --data-dir`, so that both say the same. What is made of it for a terminal is the command's.
"""
