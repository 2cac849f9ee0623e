"""Requests as the pages show them: from the store, as they are at this moment."""
