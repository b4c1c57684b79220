"""All regions: the list, the drawings above and below it, and what is kept between two visits."""
