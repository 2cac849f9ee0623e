"""Who may call the hub, how often, and how much of it one caller may use."""
