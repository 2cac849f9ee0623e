"""Makes report.html: the page of the web UI with the slices of one report inside."""
