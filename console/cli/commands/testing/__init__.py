"""`console test`: runs and creates fixture tests of a pipeline."""
