"""The job's collectives matched, and its iterations played again without one rank's fault."""
