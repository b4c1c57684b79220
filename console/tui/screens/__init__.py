"""The full screens, and the overlays over them."""
