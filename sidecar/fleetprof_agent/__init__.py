"""The optional hook inside the trainer: pure standard library, Python >= 3.9, fails open.

Guarantees: importing this package does nothing and imports nothing but itself.
"""
