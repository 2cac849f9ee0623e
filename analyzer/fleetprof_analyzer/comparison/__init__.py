"""Two reports of a job side by side, before and after a change: what differs, and what is no more than noise."""
