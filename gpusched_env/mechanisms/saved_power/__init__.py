"""What held GPUs draw less than full busy ones: by power limit and application, and while they idle."""
