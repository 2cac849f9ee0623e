"""Web servers of ours on ports that other pods reach: limits on connections, logs that peers cannot fill."""
