"""Why a job does not move: from the stacks of its ranks and their latest collectives."""
