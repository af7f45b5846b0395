//! What a test has planted that nobody may read anywhere, and how it is looked for: as it is, and in the forms in which programs copy texts. Pure; where
//! to look is for the test to say.

use std::{collections::BTreeSet, fmt};

use base64::{
    Engine,
    alphabet::{self, Alphabet},
    engine::{GeneralPurpose, general_purpose::NO_PAD},
};

/// How every token of Keystone begins.
const TOKEN: &str = "gAAAA";
/// A text may be escaped within what is escaped: a document in a field of a document in a line of a log.
const DEEPEST: usize = 3;

/// What nobody may read anywhere. It begins with the tokens of Keystone, whoever they are given to.
#[derive(Clone)]
pub struct Planted {
    secrets: Vec<Secret>,
}

#[derive(Clone)]
struct Secret {
    plain: String,
    /// What any text that holds it has in base64, wherever in it the secret begins.
    encoded: Vec<String>,
}

/// Where a secret is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether it stands there encoded; otherwise as it is, at least once the line is unescaped.
    pub is_base64: bool,
    /// The line, as it stands there.
    pub line: String,
}

impl Default for Planted {
    fn default() -> Self {
        let mut none = Self { secrets: Vec::new() };
        none.plant(TOKEN);
        none
    }
}

impl fmt::Debug for Planted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} secrets", self.secrets.len())
    }
}

impl Planted {
    /// Nobody may read this anywhere, either. It has one line, and so many characters that it comes about nowhere by chance.
    pub fn plant(&mut self, secret: &str) {
        let alphabets = [&alphabet::STANDARD, &alphabet::URL_SAFE];
        let encoded = alphabets.into_iter().flat_map(|alphabet| in_base64(secret, alphabet));
        self.secrets.push(Secret {
            plain: secret.to_owned(),
            encoded: encoded.collect::<BTreeSet<_>>().into_iter().collect(),
        });
    }

    /// The first line that tells one of them: as it is; escaped as in JSON, URLs or forms, also one within the other; and in base64, alone or anywhere in
    /// what was encoded whole.
    pub fn told_in(&self, text: &str) -> Option<Told> {
        text.lines().find_map(|line| {
            let is_base64 = readings(line).iter().find_map(|reading| self.is_read(reading))?;
            Some(Told {
                is_base64,
                line: line.to_owned(),
            })
        })
    }

    /// Whether one of them stands there encoded, where one does.
    fn is_read(&self, text: &str) -> Option<bool> {
        let holds = |form: &String| text.contains(form.as_str());
        self.secrets.iter().find_map(|secret| {
            let is_encoded = || secret.encoded.iter().any(holds).then_some(true);
            holds(&secret.plain).then_some(false).or_else(is_encoded)
        })
    }
}

/// What the whole of a text has in common in base64 that has this somewhere: one for each way in which it can lie across the groups of three bytes.
fn in_base64(secret: &str, alphabet: &Alphabet) -> [String; 3] {
    let engine = GeneralPurpose::new(alphabet, NO_PAD);
    [0, 1, 2].map(|before| {
        let text = [vec![0; before], secret.as_bytes().to_vec()].concat();
        // Characters of six bits, of which the first and the last may have some of what stands beside it.
        let (first, last) = ((before * 8).div_ceil(6), text.len() * 8 / 6);
        engine.encode(text)[first..last].to_owned()
    })
}

/// The text as it stands, and unescaped in every way, also several times.
fn readings(text: &str) -> Vec<String> {
    let mut found = BTreeSet::from([text.to_owned()]);
    for _ in 0..DEEPEST {
        let deeper: Vec<String> = found
            .iter()
            .flat_map(|text| [of_json(text), of_url(text, false), of_url(text, true)])
            .collect();
        let before = found.len();
        found.extend(deeper);
        if found.len() == before {
            break;
        }
    }
    found.into_iter().collect()
}

/// The text of a string of JSON. What stands behind a backslash and is no escape stays.
fn of_json(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut units = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        units.extend(before.encode_utf16());
        let mut letters = after.chars();
        let letter = letters.next();
        rest = letters.as_str();
        match letter {
            Some('n') => units.push(u16::from(b'\n')),
            Some('r') => units.push(u16::from(b'\r')),
            Some('t') => units.push(u16::from(b'\t')),
            Some('u') => match rest.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok()) {
                Some(unit) => {
                    units.push(unit);
                    rest = &rest[4..];
                }
                None => units.extend("\\u".encode_utf16()),
            },
            Some(letter) => units.extend(letter.encode_utf16(&mut [0; 2]).iter()),
            None => units.push(u16::from(b'\\')),
        }
    }
    units.extend(rest.encode_utf16());
    String::from_utf16_lossy(&units)
}

/// The text of a part of a URL, or of a form, where a plus is a space. What is no escape stays as it is.
fn of_url(text: &str, is_form: bool) -> String {
    if !text.contains(['%', '+']) {
        return text.to_owned();
    }
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        (bytes, rest) = match (*first, escaped) {
            (b'%', Some(byte)) => (pushed(bytes, byte), &after[2..]),
            (b'+', _) if is_form => (pushed(bytes, b' '), after),
            (byte, _) => (pushed(bytes, byte), after),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn pushed(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use serde_json::{Value, json};

    use super::*;

    const SECRET: &str = "s3cr\"et/of+a \\cloud%é&ever";

    fn told(text: &str) -> Option<bool> {
        let mut planted = Planted::default();
        planted.plant(SECRET);
        planted.told_in(text).map(|told| told.is_base64)
    }

    fn percent(text: &str, is_kept: impl Fn(u8) -> bool) -> String {
        let escaped = text.bytes().map(|byte| {
            if is_kept(byte) {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        });
        escaped.collect()
    }

    #[test]
    fn a_secret_is_found_as_it_is_and_its_line_is_told() {
        let mut planted = Planted::default();
        planted.plant(SECRET);
        let line = format!("the cloud said {SECRET}!");
        let told = planted.told_in(&format!("nothing\n{line}\nnothing"));
        let expected = Told { is_base64: false, line };
        assert_eq!(told, Some(expected));
        assert_eq!(planted.told_in("s3cr et/of a cloud\n100 % of + nothing \\"), None);
    }

    #[test]
    fn a_secret_is_found_in_base64_alone() {
        assert_eq!(told(&STANDARD.encode(SECRET)), Some(true));
        assert_eq!(told(&URL_SAFE_NO_PAD.encode(SECRET)), Some(true));
        let data = json!({ "data": { "password": STANDARD.encode(SECRET) } });
        assert_eq!(told(&data.to_string()), Some(true));
    }

    /// The data of a Secret is the base64 of a whole file, in which the secret begins anywhere.
    #[test]
    fn a_secret_is_found_in_base64_of_all_that_it_stands_in() {
        for before in 0..6 {
            let file = format!("{}{SECRET}\n  region_name: here\n", "#".repeat(before));
            assert_eq!(told(&STANDARD.encode(&file)), Some(true), "{before} bytes before it");
            assert_eq!(
                told(&URL_SAFE_NO_PAD.encode(&file)),
                Some(true),
                "{before} bytes before it"
            );
        }
    }

    #[test]
    fn a_secret_is_found_as_urls_and_forms_write_it() {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
        let url = percent(SECRET, is_plain);
        assert_eq!(told(&format!("GET /login?password={url}&next=1")), Some(false));
        assert_eq!(told(&url.to_lowercase()), Some(false));
        assert_eq!(
            told(&percent(SECRET, |byte| is_plain(byte) || byte == b'/')),
            Some(false)
        );
        assert_eq!(told(&url.replace("%20", "+")), Some(false));
        assert_eq!(told(&percent(&STANDARD.encode(SECRET), is_plain)), Some(true));
    }

    #[test]
    fn a_secret_is_found_as_json_writes_it() {
        let once = json!({ "secret": SECRET }).to_string();
        assert_eq!(told(&once), Some(false));
        // As writers do that keep to ASCII and to what HTML can hold.
        let strict = Value::from(SECRET).to_string().replace('/', "\\/");
        let strict = strict.replace('é', "\\u00e9").replace('&', "\\u0026");
        assert_eq!(told(&strict), Some(false));
    }

    #[test]
    fn a_secret_is_found_in_what_is_escaped_more_than_once() {
        let twice = json!({ "message": json!({ "secret": SECRET }).to_string() }).to_string();
        assert_eq!(told(&twice), Some(false));
        assert_eq!(told(&json!({ "message": twice }).to_string()), Some(false));
        let in_url = percent(&Value::from(SECRET).to_string(), |byte| byte.is_ascii_alphanumeric());
        assert_eq!(told(&json!({ "url": in_url }).to_string()), Some(false));
    }

    #[test]
    fn a_token_is_found_in_every_form_whoever_it_is_of() {
        let token = "gAAAAABpJ1vXyz-_0";
        let planted = Planted::default();
        for text in [
            token.to_owned(),
            STANDARD.encode(token),
            STANDARD.encode(format!("X-Auth-Token: {token}")),
        ] {
            assert!(planted.told_in(&text).is_some(), "{text}");
        }
        assert_eq!(planted.told_in("AAAAAAAAAAAAAAAA gAAA"), None);
    }
}
