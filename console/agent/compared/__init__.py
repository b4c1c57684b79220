"""The comparison of two versions of a table as data: records a day and column, kept in the region; examples on request."""
