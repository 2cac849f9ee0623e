"""Samples of host, devices and training threads, put together for one rank."""
