"""Same bits, same bytes, and many callers at once."""
