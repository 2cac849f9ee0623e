"""Real API servers, pods and charts for tests."""
