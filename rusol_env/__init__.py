"""Russian Solitaire for reinforcement learning."""
