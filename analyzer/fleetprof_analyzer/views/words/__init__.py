"""Sentences for people, the same in the terminal and on the page."""
