"""Chosen ranks in a chosen window, as one trace for Perfetto: on one clock, with what the analysis found marked."""
