"""The server's processes, disk and certificates. Read by scrape; ends of processes are counted by the parent."""

from __future__ import annotations

from apiserver.metrics.definition import CountMetric, MetricKind, StateMetric

_PROCESS = ("process",)

BUILD = StateMetric(
    "treeplane_build_info",
    "1, with the version that runs.",
    ("version",),
)
ENDS = CountMetric(
    "treeplane_process_ends_total",
    "Processes of the server that ended by themselves and were started again.",
    _PROCESS,
)
CPU = StateMetric(
    "process_cpu_seconds_total",
    "CPU time of a process, since its start.",
    _PROCESS,
    kind=MetricKind.COUNTER,
)
MEMORY = StateMetric(
    "process_resident_memory_bytes",
    "Memory of a process; pages of the store that several read count in each.",
    _PROCESS,
)
STARTED = StateMetric(
    "process_start_time_seconds",
    "When a process started, in seconds since 1970.",
    _PROCESS,
)
FILES = StateMetric(
    "process_open_fds",
    "Files and connections that a process has open.",
    _PROCESS,
)
DISK_FREE = StateMetric(
    "treeplane_data_free_bytes",
    "Room that is left where the data directory is.",
)
DISK_SIZE = StateMetric(
    "treeplane_data_size_bytes",
    "How large the disk is on which the data directory is.",
)
CERTIFICATES = StateMetric(
    "treeplane_certificate_expiration_timestamp_seconds",
    "When a certificate ends: the CA's, the server's, the administrator's, and of those that it was given its own "
    "(`given`), the first of the CAs of clients (`client-ca`), the last of those of the external URL (`external-ca`).",
    ("certificate",),
)
