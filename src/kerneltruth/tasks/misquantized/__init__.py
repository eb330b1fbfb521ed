"""What wrong quantized kernels compute: the tasks with one rule changed."""
