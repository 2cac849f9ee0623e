"""Traces in, report out: a library first, a command second, a Job third.

Guarantees: untrusted input is read within limits; every loss of input is counted in the report.
"""
