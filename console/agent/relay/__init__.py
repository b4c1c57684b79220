"""The switch of a managed landing table to another version: the intake is held, and the relay feed reverses its direction."""
