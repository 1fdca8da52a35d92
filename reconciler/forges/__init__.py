"""What is said on a forge, the place where a repository's pull requests are: GitHub, GitLab, Gitea or Forgejo."""
