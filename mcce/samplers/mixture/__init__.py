"""A finite mixture for mixed data: any columns given any others, in closed form."""
