"""`console test`: fixture tests of a pipeline, and how they are written."""
