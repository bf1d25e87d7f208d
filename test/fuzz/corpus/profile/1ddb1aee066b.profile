version = 1
[memory.levels.cache]
latency_ns = inf
