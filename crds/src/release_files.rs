//! The small files of a release.
