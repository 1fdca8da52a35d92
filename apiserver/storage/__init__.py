"""Ordered keys, optimistic concurrency, a change log: etcd's model in one small protocol, and what implements it."""
