"""The findings of a report: a module for each kind, with its threshold, its facts, its sentence and its advice."""
