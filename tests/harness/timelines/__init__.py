"""Timeline files of rows that a test gives."""
