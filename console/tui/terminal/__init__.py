"""What lies between the screens and the terminal that they are drawn on."""
