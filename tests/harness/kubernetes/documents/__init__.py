"""Objects of Kubernetes that tests send: right ones, and wrong ones with what is wrong."""
