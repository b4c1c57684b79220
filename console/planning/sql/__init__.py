"""The sqlglot door: all that knows SQL as a tree. What leaves this room is text, names, hashes and problems."""
