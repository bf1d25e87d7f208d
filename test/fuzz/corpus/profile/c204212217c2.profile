version = 1
[memory
