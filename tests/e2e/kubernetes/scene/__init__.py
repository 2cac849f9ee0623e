"""The scene of the tests on Kubernetes: training Jobs, an S3 server, an installation of fleetprof, and requests.

Everything goes through what a user has: objects of the API server, `kubectl` and `helm`.
"""
