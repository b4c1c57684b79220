"""What lies between a batch and the next: throttles, further tries, rows set aside."""
