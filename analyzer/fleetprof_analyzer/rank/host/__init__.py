"""The host's time as lines of code: where the training thread was, by samples or by the trace's own frames."""
