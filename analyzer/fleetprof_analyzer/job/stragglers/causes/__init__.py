"""Why a rank is late, from what exceeds in its own time and what else bears witness."""
