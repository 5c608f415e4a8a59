"""The Python package as a user meets it."""
