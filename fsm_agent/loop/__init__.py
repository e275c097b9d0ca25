"""The driver of the declared machine, and the effects and actions of its states."""
