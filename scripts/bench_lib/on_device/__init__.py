"""`scripts/on-device`: all proofs and figures that need an NVIDIA device, in one run of minutes."""
