"""The history of a conversation, and the one validator of what the Messages API accepts of it."""
