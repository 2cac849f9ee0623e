"""The hub as a process, and peers of it: scripted and hostile."""
