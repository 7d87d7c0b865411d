"""What comes out: tables, CSV, figures and reports."""
