"""Frozen values and pure functions: GPU models, declared hardware, identities, the guard.

Nothing here does I/O but for reading the packaged catalogue, and nothing reads a clock.
"""
