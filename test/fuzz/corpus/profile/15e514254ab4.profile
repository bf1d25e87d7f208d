version = 1
[memory.reduce]
fixed_ns = -1
