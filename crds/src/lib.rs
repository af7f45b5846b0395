//! The API: kinds, conditions, names, labels and the file formats of a release
