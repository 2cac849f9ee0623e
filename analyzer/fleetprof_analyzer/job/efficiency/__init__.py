"""How far a job is from the published peak of its devices."""
