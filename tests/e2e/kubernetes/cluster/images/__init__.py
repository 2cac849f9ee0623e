"""The images of the tests: what builds them, and from which files."""
