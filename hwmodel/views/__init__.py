"""Views of results: tables, figures, pages and explanations."""
