//! Making releases.
