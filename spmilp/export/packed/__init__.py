"""The release profile: what runs, as a string of bits without times and names."""
