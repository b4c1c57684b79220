"""The requirements of an agent beyond Python: Delta's jars, and a class archive for a faster start. `console setup` installs them."""
