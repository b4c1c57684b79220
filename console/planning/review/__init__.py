"""The parts of a plan beside its steps: baseline, drift, changed answers, parsed keys, retention and cost."""
