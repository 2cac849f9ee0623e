"""Does a trigger fire? What is seen of jobs, what must last, what comes due, what Alertmanager says: no I/O."""
