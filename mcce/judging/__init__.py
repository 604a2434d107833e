"""Judging conditionals by rows that they have not seen: scores, tests, where one fails, and which is best."""
