"""What the library costs, as ratios to a bare loop on the SDK, measured side by side: `python -m benchmarks`."""
