"""Causes of lost time that practitioners know, each with the evidence in a rank's trace or samples that proves it."""
