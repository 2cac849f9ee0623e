"""The sentences that the guards of `job.findings` allow, listed."""
