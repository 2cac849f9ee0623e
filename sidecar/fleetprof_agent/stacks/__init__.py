"""Where the threads of this process are, for who asks at any moment, also while the training hangs."""
