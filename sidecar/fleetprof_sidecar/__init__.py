"""The sidecar beside the trainers: answers Kineto's polls, runs captures, spools and uploads their traces.

Guarantees: nothing here can fail or outlive the training job; it dials out and opens no port.
"""
