"""Reuse of a live table: continued feeds, columns proven from stored ones, and the states of an aggregate."""
