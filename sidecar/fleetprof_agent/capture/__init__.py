"""The agent's part in one capture."""
