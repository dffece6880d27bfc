"""Scripts that produce the project's own results, data and checks. They are not part of the package."""
