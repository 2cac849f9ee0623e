"""ProfilePolicies, read where the operator stores how they stand."""
