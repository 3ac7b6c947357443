"""What other tools call, or read and write, to plan their memories here."""
