"""The documents that follow from the types of a request, as text: see crds/generate.py, which writes it."""
