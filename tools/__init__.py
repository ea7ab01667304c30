"""What brings the platform up on a machine: toolchain, local cluster, local images."""
