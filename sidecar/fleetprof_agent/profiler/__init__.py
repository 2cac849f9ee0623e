"""Kineto in this process: its on-demand trace, and the profiles that the job makes itself."""
