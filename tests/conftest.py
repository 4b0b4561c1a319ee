"""Fixtures for every suite."""
