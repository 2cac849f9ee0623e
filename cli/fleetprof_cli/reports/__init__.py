"""Reports and traces as commands find, make, compare and show them."""
