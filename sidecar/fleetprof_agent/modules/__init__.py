"""The marks of modules in one recorded iteration, the last of a capture's window."""
