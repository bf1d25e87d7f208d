version = 1
[memory.levels.cache]
measured = 1
