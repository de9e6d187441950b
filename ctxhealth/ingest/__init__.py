"""The agents' side of the server: sockets and HTTP intake, credits, acks, command delivery."""
