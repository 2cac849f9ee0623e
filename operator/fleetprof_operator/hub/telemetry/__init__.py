"""The telemetry of running jobs, added up by workload: kept in memory, told to Prometheus, remembered for a day."""
