"""Adds the sidecar to pods: a pure change of a pod, and the webhook that offers it to the API server.

Guarantees: importing this package starts nothing. It needs neither the hub nor kopf; what goes wrong in it lets the pod
pass unchanged.
"""
