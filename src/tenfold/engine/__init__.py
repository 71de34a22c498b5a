"""Engine: asynchronous execution of pushed operators, batched by signature."""
