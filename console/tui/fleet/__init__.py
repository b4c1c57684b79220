"""All regions: the list, the drawings above and below it, and the state kept between sessions."""
