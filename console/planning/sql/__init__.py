"""The only package that handles SQL as a tree (sqlglot). Its results are text, names, hashes and problems."""
