"""Invoices for monthly subscriptions, in whole cents."""
