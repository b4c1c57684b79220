"""What a plan reports beside its steps: baseline, drift, changed answers, parsed keys, retention and cost."""
