"""Reports as the pages show them: read from the store, cut to what a page needs."""
