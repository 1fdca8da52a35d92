"""The only door to git: mirror, snapshots, Merkle difference, writing commits. Ids are hexadecimal text everywhere."""
