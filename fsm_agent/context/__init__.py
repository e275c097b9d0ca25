"""What the model is sent: the stages that keep a conversation within the model's context window."""
