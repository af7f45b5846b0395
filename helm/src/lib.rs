//! Helm charts rendered in-process, byte for byte like helm template
