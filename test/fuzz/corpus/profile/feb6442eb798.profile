version = 1
memory = 3
