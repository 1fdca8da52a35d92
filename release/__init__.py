"""What makes a release, and the lists of what an installation is made of. Nothing of it is installed."""
