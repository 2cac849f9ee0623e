"""The report for people: as text in a terminal, and as one HTML page. Nothing here measures."""
