"""Programs as the field's course writes them: read, scheduled, run, compared with NumPy."""
