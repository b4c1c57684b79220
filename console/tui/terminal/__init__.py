"""Between the screens and the terminal: output driver, event loop, ASCII fallback."""
