"""Einsum's equation with the result written out."""


def explicit_equation(equation: str) -> str:
    """Return an equation without blanks and with ``->``.

    Without one, the result has the letters that occur once, in alphabetical order.
    """
    equation = "".join(equation.split())
    if "->" in equation:
        return equation
    letters = equation.replace(",", "")
    once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
    return f"{equation}->{''.join(once)}"
