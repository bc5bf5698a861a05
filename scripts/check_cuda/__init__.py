"""What NVIDIA's compilers make of the CUDA kernels, held against what the definition allows."""
