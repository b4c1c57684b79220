"""Spark's SQL as text: parsed into sqlglot's trees and written back."""
