"""The common parts of Iceberg and Delta."""
