"""The rules of one capture on one process. They are pure: events in, effects out."""
