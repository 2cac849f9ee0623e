"""The telemetry of workloads between captures: the last day, as the hub stored it."""
