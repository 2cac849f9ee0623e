"""The object store: one seam (`base`), and one module per implementation.

Guarantees: importing this package imports neither boto3 nor any implementation.
"""
