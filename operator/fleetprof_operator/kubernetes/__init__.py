"""The Kubernetes API: calls, listings, owners and workloads, and what a pod's status says."""
