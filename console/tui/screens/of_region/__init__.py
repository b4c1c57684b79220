"""The screens of one region: its rollout, its plan, its gate."""
