"""What tables are expected to hold, compiled: conditions over their columns that an agent evaluates beside its writes."""
