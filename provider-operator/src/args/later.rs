//! Flags of the Go provider for what this version does in another way: a Deployment that was made for it starts ours as it is.

/// Flags without effect.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LaterArgs {
    /// Of the Go provider, in minutes; without effect: how long a cloud may take to import an image follows from the size of the image.
    #[arg(long, value_name = "MINUTES")]
    image_import_timeout: Option<i64>,
}

impl LaterArgs {
    /// The flags that were given, for a word in the log.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let given = self.image_import_timeout.map(|_| "--image-import-timeout");
        given.into_iter().collect()
    }
}
