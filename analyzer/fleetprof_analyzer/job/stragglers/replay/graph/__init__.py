"""The graph of a replay: its plan, the order of its nodes, and the transfers of kernels with several partners."""
