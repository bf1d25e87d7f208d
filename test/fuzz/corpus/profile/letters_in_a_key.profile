version = 1
[memory.levels.cacÒ“š‰š‹ncy_ns = nan
