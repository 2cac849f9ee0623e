"""What running jobs do, all the time: the measures and the documents that hub, command line and web UI share."""
