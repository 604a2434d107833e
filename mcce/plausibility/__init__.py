"""What is plausible: derived columns, relations between columns, and the score."""
