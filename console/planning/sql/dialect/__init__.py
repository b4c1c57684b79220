"""Spark's SQL as text: how it is read into sqlglot's trees and written back."""
