[memory.reduce]
fixed_ns = 3.5
