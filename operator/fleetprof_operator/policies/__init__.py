"""ProfilePolicies: what fires, whether that makes a capture, and what became of it.

Pure: `triggers` (does one fire), `decision` (capture or not, and why), `log` (what a policy has done, which is its
status), `policy_state`. Around them `receiver` (Alertmanager's calls), `exemption`, `engine` (everything in turn),
`captures` (what comes of a decision), `notifications` (what people are told of it) and `control` (kopf's handlers).
"""
