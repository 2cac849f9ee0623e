"""Who people are: an identity provider, and keys that sign tokens."""
