"""What kinds a workspace serves and how their objects are read and written: strategies over the store."""
