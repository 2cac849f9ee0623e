"""The directory that trainers and sidecar share, and the endpoints that answer Kineto and the agents in it."""
