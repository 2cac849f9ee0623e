"""What follows from the types of a request, as text: see crds/generate.py, which writes it."""
