"""The `lathe` command as a user meets it."""
