version = 1
[memory.levels.cache]
latency_ns = 12
per_byte_ns = 0.02
measured = true
