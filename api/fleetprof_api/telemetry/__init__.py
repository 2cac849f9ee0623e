"""The telemetry of running jobs: the measures and the documents that hub, command line and web UI share."""
