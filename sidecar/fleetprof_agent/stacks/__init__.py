"""The stacks of this process's threads, for who asks at any moment, also while the training hangs."""
