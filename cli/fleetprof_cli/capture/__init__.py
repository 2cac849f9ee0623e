"""One capture as a command asks for it and follows it."""
