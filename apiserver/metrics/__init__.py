"""What the server counts and measures: definitions, one file a subject, and how they come together over processes.

Whoever counts calls a definition (`REQUESTS.add(...)`), which costs a few additions in memory; what was counted is
written to files a moment later (pending, library), from which one scrape reads the sum of all processes. What the store
and the machine tell anyway is counted by nobody: it is read when somebody asks (apiserver/scrape). Of the rest of the
program nothing is imported here.
"""
