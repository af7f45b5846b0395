//! Charts to objects: engine by file, memo of random answers, cache by digest
