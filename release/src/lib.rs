//! A release as bytes: its files, sources and packing
