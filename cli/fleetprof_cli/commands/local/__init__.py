"""Commands that need a hub on this machine, or start one: they capture jobs that run here."""
