"""The parts of a plan that follow from the verdicts: the new release, the steps that build it, prices, changes and options."""
