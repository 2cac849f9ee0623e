"""What a rank did between its collectives."""
