"""Whole captures, from a folder or from the store: read, analysed in processes, written as a report."""
