"""From rows of a file to columns of integers: growing arrays, exact nanoseconds, texts as numbers."""
