"""Engine package: asynchronous execution of pushed operators, batched by signature."""
