"""What the agent does around one capture."""
