"""What running jobs do, added up by workload: kept in memory, told to Prometheus, remembered for a day."""
