version = 1
[,]
