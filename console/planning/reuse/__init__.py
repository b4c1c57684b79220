"""What a live table goes on giving: to its feeds, column by column by proof, and by the states of an aggregate."""
