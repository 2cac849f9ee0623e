"""What tests and benches share: planted traces and jobs, real systems to start, peers that speak the protocols."""
