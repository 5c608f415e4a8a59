"""Every claimed operator on random attributes, shapes and dtypes against the reference. See table.py."""
