"""The comparison of two versions of a table as data: records per day and column, stored in the region; examples on request."""
