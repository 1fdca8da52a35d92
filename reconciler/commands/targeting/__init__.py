"""`treeplane target`: sync targets as they are added, shown and removed.

`adding` and `removing` write files by `filing`; `admincluster` is the door to the cluster itself, as its administrator;
`seen` is what the server tells. What rights we have on a cluster is said in `rights`, and in docs/targets.md.
"""
