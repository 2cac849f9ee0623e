"""The sentences for people, the same in report, terminal and page: what the measures found, in words."""
