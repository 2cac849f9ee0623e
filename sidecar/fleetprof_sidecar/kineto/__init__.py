"""Kineto's on-demand protocol: its datagrams and its configuration text. Pure."""
