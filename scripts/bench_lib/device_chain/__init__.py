"""`scripts/on-device-chain`: a whole network whose worker computes on an NVIDIA device, in one run of minutes."""
