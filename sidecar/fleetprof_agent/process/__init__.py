"""Facts about this process, asked of the operating system: who it is, its memory, its control groups."""
