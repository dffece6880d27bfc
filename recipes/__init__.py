"""How the project's own results, data and checks are made. Nothing here is part of the package."""
