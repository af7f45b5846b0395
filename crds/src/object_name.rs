//! Names of objects of any kind, as far as they are part of an address. The rules of single kinds are the API server's business.

/// Most bytes of a name: the length of a DNS name, which most kinds demand and none exceeds.
pub const LONGEST: usize = 253;

/// Whether an object with this name, or in a namespace of this name, can be asked for.
///
/// The API server refuses `/` and `%` in every name, and `.` and `..` as a whole, for they mean something in a path
/// (`k8s.io/apimachinery/pkg/api/validation/path`). The other characters that are refused here end a path or cannot be in one; only
/// kinds with the laxest rules (Roles and their bindings) would take them.
pub fn is_addressable(name: &str) -> bool {
    let fits = |letter: char| !letter.is_control() && !letter.is_whitespace() && !"/%?#<>`".contains(letter);
    (1..=LONGEST).contains(&name.len()) && !matches!(name, "." | "..") && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_could_lead_elsewhere_is_no_name() {
        for name in [
            "web",
            "a.b-c",
            "system:node-proxier",
            "...",
            "Ümlaut",
            &"x".repeat(LONGEST),
        ] {
            assert!(is_addressable(name), "{name:?}");
        }
        let refused = [
            "", ".", "..", "a/b", "../a", "a%2fb", "a?b", "a#b", "a b", "a\u{a0}b", "a\nb", "a\u{7f}", "<a>", "`a",
        ];
        for name in refused.into_iter().chain([&*"x".repeat(LONGEST + 1)]) {
            assert!(!is_addressable(name), "{name:?}");
        }
    }
}
