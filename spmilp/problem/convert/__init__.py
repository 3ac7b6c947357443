"""Problems from and to the plain formats of neighbouring fields: job shops, lists of lifetimes."""
