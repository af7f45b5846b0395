//! Texts that have to fit into one status together: an API server refuses one that is too large as a whole. Decides what each of them keeps.

/// Room for the texts of one status that tell of its parts one by one. Conditions tell the first ones in full.
const BYTES: usize = 256 * 1024;

/// Shortens all texts alike where they are too long together.
pub(crate) fn shorten<'text>(texts: impl Iterator<Item = &'text mut String>) {
    let texts: Vec<&mut String> = texts.filter(|text| !text.is_empty()).collect();
    if texts.iter().map(|text| text.len()).sum::<usize>() <= BYTES {
        return;
    }
    let each = BYTES / texts.len();
    for text in texts {
        text.truncate(text.floor_char_boundary(each));
    }
}
