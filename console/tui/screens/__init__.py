"""The two full screens, and the help over them."""
