"""The tables as C99: types that are the same for every plan, and the arrays of one plan."""
