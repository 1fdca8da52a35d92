"""Who asks (certificates, tokens, impersonation), may they (RBAC and workspace access), and the keys behind it."""
