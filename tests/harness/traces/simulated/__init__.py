"""Jobs simulated by event, written as Kineto writes them: made from the format alone, not from the analyzer."""
