"""The web UI's service: the fleet, its captures and their reports over HTTP, for people and for programs.

Guarantees: the object store is the truth, and the catalog beside it may be lost at any time; whatever comes from a
trace leaves as JSON or as a file of its own, never as a part of a page's markup.
"""
