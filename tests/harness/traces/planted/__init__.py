"""Traces with faults that are known: jobs of any shape, the truth beside what a profiler would have written."""
