"""Identities of people: an identity provider, and keys that sign tokens."""
