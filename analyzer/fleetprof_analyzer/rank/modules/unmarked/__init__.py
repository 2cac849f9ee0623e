"""Modules of iterations that have no marks, by aligning their operations with those of the marked one."""
