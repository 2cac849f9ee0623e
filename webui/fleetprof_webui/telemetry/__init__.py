"""The telemetry of workloads between captures: the last day, as Prometheus or the object store has it."""
