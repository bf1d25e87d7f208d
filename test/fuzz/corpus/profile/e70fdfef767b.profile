version = 1
[memory.levels.moon]
latency_ns = 1
