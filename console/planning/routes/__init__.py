"""What the choice of a route rests on: proofs from lineage, the halves of a hybrid, what a feed needs, the sentences."""
