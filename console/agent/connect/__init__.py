"""A Spark behind Spark Connect: no JVM of the agent's own, and only what is proven there (docs/decisions/0026)."""
