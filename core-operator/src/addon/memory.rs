//! What the process remembers of a ClusterAddon itself between reconciles. All of it can be lost.

/// Memory of one ClusterAddon, beside that of its objects.
#[derive(Default)]
pub(crate) struct AddonMemory {
    /// How often in a row something about it was refused.
    pub(crate) refusals: u32,
}
