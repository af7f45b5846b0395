//! Files of sums, as publishers of images write them: which digest they give for one file. Reads text; where it comes from, others know.

use thiserror::Error;

use super::{Algorithm, Pinned};

/// A file of sums has no more bytes.
pub const LARGEST: usize = 1024 * 1024;

/// Why a file of sums gives no digest.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SumsError {
    /// More than a file of sums has.
    #[error(
        "the file of sums has more than {LARGEST} bytes, so it is something else; give the address of the sums alone"
    )]
    TooLarge,
    /// The file is not in it.
    #[error("the file of sums does not name {name:?}; give the name under which it is listed there")]
    NotNamed {
        /// The file.
        name: String,
    },
    /// It says two things.
    #[error("the file of sums gives {name:?} two different digests, so it cannot be relied on; give the digest itself")]
    TwoDigests {
        /// The file.
        name: String,
    },
    /// Only digests that others can make collide, or of another algorithm.
    #[error("the digest of {name:?} in the file of sums is neither sha256 nor sha512; give one of these")]
    OtherAlgorithm {
        /// The file.
        name: String,
    },
}

/// The digest that a file of sums gives for the file of this name, sha512 where it gives both.
///
/// Understood are, in lines that end with LF or CRLF: `<hex>  <name>`, `<hex> *<name>`, also with `./` before the name; `SHA256 (<name>) =
/// <hex>`; and a file that is one bare `<hex>`, which is for any name. Other lines say nothing.
pub fn find(text: &str, name: &str) -> Result<Pinned, SumsError> {
    if text.len() > LARGEST {
        return Err(SumsError::TooLarge);
    }
    let named = || name.to_owned();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut found: Vec<Pinned> = Vec::new();
    let mut is_named = false;
    let mut count = 0;
    for line in lines.clone() {
        count += 1;
        let Some((digits, _)) = sum(line).filter(|(_, file)| *file == name) else {
            continue;
        };
        is_named = true;
        let Some(digest) = of_digits(digits) else { continue };
        match found.iter().find(|other| other.algorithm() == digest.algorithm()) {
            Some(other) if *other != digest => return Err(SumsError::TwoDigests { name: named() }),
            Some(_) => {}
            None => found.push(digest),
        }
    }
    if !is_named && count == 1 {
        let bare = lines.clone().next().filter(|line| is_hex(line));
        is_named = bare.is_some();
        found.extend(bare.and_then(of_digits));
    }
    match found.into_iter().max_by_key(Pinned::algorithm) {
        Some(digest) => Ok(digest),
        None if is_named => Err(SumsError::OtherAlgorithm { name: named() }),
        None => Err(SumsError::NotNamed { name: named() }),
    }
}

/// Digits and name of a line.
fn sum(line: &str) -> Option<(&str, &str)> {
    let (digits, name) = in_words(line).or_else(|| beside(line))?;
    Some((digits, name.strip_prefix("./").unwrap_or(name)))
}

/// `SHA256 (<name>) = <hex>`.
fn in_words(line: &str) -> Option<(&str, &str)> {
    let (algorithm, rest) = line.split_once(" (")?;
    let (name, digits) = rest.rsplit_once(") = ")?;
    (!algorithm.contains(' ') && is_hex(digits)).then_some((digits, name))
}

/// `<hex>  <name>` or `<hex> *<name>`.
fn beside(line: &str) -> Option<(&str, &str)> {
    let (digits, name) = line.split_once([' ', '\t'])?;
    let name = name.trim_start();
    is_hex(digits).then(|| (digits, name.strip_prefix('*').unwrap_or(name)))
}

/// Whether it could be a digest of any algorithm.
fn is_hex(digits: &str) -> bool {
    digits.len() >= 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn of_digits(digits: &str) -> Option<Pinned> {
    let digits = digits.to_ascii_lowercase();
    [Algorithm::Sha256, Algorithm::Sha512]
        .into_iter()
        .find_map(|algorithm| Pinned::new(algorithm, &digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const OTHER: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn long() -> String {
        SHORT.repeat(2)
    }

    #[test]
    fn every_usual_form_is_understood() {
        for text in [
            format!("{SHORT}\n"),
            SHORT.to_owned(),
            format!("{SHORT}  node.img\n"),
            format!("{SHORT} *node.img\r\n{OTHER} *other.img\r\n"),
            format!("# sums of the day\n{OTHER}  other.img\n{SHORT}  ./node.img\n"),
            format!("SHA256 (node.img) = {SHORT}\nSHA256 (other.img) = {OTHER}\n"),
            format!("{}  node.img\n", SHORT.to_uppercase()),
            format!("{SHORT}  node.img\n{SHORT}  node.img\n"),
            format!("d41d8cd98f00b204e9800998ecf8427e  node.img\n{SHORT}  node.img\n"),
        ] {
            let found = find(&text, "node.img").unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found.to_string(), format!("sha256:{SHORT}"), "{text}");
        }
        let both = format!("{SHORT}  node.img\n{}  node.img\n", long());
        assert_eq!(
            find(&both, "node.img").unwrap().to_string(),
            format!("sha512:{}", long())
        );
        let spaces = format!("{SHORT}  a node.img\nSHA256 (b (1).img) = {OTHER}\n");
        assert_eq!(find(&spaces, "a node.img").unwrap().hex(), SHORT);
        assert_eq!(find(&spaces, "b (1).img").unwrap().hex(), OTHER);
    }

    #[test]
    fn what_is_not_said_clearly_is_not_guessed() {
        let name = || "node.img".to_owned();
        for text in [
            String::new(),
            format!("{OTHER}  other.img\n"),
            format!("{OTHER}  dir/node.img\n"),
            format!("{SHORT}\n{OTHER}\n"),
            "<html>not found</html>".to_owned(),
        ] {
            assert_eq!(
                find(&text, "node.img"),
                Err(SumsError::NotNamed { name: name() }),
                "{text}"
            );
        }
        let two = format!("{SHORT}  node.img\n{OTHER} *node.img\n");
        assert_eq!(find(&two, "node.img"), Err(SumsError::TwoDigests { name: name() }));
        for weak in [
            "d41d8cd98f00b204e9800998ecf8427e  node.img",
            "d41d8cd98f00b204e9800998ecf8427e",
        ] {
            assert_eq!(find(weak, "node.img"), Err(SumsError::OtherAlgorithm { name: name() }));
        }
        assert_eq!(find(&" ".repeat(LARGEST + 1), "node.img"), Err(SumsError::TooLarge));
    }
}
