"""Model files that mean harm, or met it."""
