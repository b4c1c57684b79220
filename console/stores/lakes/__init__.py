"""What Iceberg and Delta have in common."""
