"""Who signed a commit, and this server's own signature of what it commits."""
