"""The catalog: an index over the object store that a database searches, filters and sorts.

Guarantees: everything in it comes from the store and can be read from there again; it holds no secret and no trace.
"""
