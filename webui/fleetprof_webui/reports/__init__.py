"""Reports in the store: their files and slices, passed on; what must be made of a whole report is made beside."""
