//! A real control plane for tests, journeys, fault injection, benchmarks
