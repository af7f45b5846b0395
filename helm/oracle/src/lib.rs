//! Our chart engine beside the real Helm: what needs the real binaries, and nothing that ships.
