"""Commands over captures that there are: reports, comparisons, the web UI and its catalog."""
