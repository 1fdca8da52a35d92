"""What kube-apiserver does in code to its own kinds: defaults and checks beyond the schemas, by kind family."""
