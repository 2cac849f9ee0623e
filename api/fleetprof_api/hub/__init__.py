"""The hub protocol's messages and services (generated), and where the hub of local mode is."""
