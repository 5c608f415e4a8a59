"""What the whole-system tests share: where things are, ways to run them, float64 references."""
