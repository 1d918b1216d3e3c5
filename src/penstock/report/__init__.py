"""Journals in, tables and one page out."""
