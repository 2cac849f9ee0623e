"""ProfilePolicies: what fires, whether that makes a capture, and what became of it.

Pure: `figures` (what is known of a job), `persistence` and `evaluation` (does a trigger fire), `schedule`, `alerts`,
`decision` (capture or not, and why), `log` (what a policy has done: its status). Around them `receiver` (Alertmanager's
calls), `notification`, `exemption`, `engine` (everything in turn) and `control` (kopf's handlers).
"""
