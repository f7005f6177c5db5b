//! The benchmark: ratios against a baseline measured in the same run, because machines are noisy.

fn main() {}
