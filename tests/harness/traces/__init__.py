"""Traces and jobs with planted truth."""
