"""Tables as each kind of server tells of them."""
