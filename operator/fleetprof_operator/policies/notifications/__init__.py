"""Notifications of a capture that ended: a webhook of the administrator's, and an alert in Alertmanager."""
