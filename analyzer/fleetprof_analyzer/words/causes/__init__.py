"""Known causes of lost time in words."""
