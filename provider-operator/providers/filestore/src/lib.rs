//! Node images in a directory: resumable, confirmed by the disk, with their sums beside them.
