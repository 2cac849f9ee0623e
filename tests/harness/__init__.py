"""The common part of tests and benches: planted traces and jobs, real systems to start, peers of the protocols."""
