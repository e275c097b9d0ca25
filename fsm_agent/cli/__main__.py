"""`python -m fsm_agent.cli`, for where the script `fsm-agent` is not on the path."""

from fsm_agent.cli import main

main()
