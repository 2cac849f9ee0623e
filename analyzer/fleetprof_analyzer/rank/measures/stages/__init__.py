"""The stages of the training loop, on the main thread."""
