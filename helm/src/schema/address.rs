//! URLs of schemas: how a reference is resolved, and what fragments mean. Nothing is ever fetched.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::format::quoted;
use crate::url::{self, HostRule};

/// What a URL is made of, the fragment aside.
#[derive(Clone, Debug, Default)]
struct Url<'a> {
    scheme: &'a str,
    /// What follows the scheme when that is no path.
    opaque: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
}

/// A URL before its fragment, and the fragment.
pub(super) fn split(text: &str) -> (&str, &str) {
    text.split_once('#').unwrap_or((text, ""))
}

/// A URL before its fragment, and the decoded fragment.
pub(super) fn split_decoded(text: &str) -> Result<(&str, String), String> {
    let (url, fragment) = split(text);
    match decode(fragment) {
        Ok(fragment) => Ok((url, fragment)),
        Err(problem) => Err(format!("error in parsing {}: {problem}", quoted(text))),
    }
}

/// A decoded fragment as it stands in a URL; slashes stay.
pub(super) fn encode(fragment: &str) -> String {
    let mut text = String::with_capacity(fragment.len());
    for byte in fragment.bytes() {
        push_escaped(byte, b"-_.~$&+:=@/", &mut text);
    }
    text
}

/// Replaces `%41` and its like. The error is Go's.
fn decode(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after.get(..2).and_then(|digits| str::from_utf8(digits).ok());
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            let broken = String::from_utf8_lossy(&rest[..rest.len().min(3)]);
            return Err(format!("invalid URL escape {}", quoted(&broken)));
        };
        bytes.push(byte);
        rest = &after[2..];
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl<'a> Url<'a> {
    /// Reads a URL without fragment. The error is Go's.
    fn parse(text: &'a str, hosts: HostRule) -> Result<Self, String> {
        url::Url::parse(text.as_bytes(), hosts)?;
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if !scheme.contains(['/', '?']) => (scheme, rest),
            _ => ("", text),
        };
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(query)),
            None => (rest, None),
        };
        let mut url = Self {
            scheme,
            query,
            path: rest,
            ..Self::default()
        };
        if !rest.starts_with('/') && !scheme.is_empty() {
            (url.opaque, url.path) = (Some(rest), "");
        } else if let Some(after) = rest.strip_prefix("//")
            && (!scheme.is_empty() || !after.starts_with('/'))
        {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            (url.authority, url.path) = (Some(authority), path);
        }
        Ok(url)
    }

    fn is_absolute(&self) -> bool {
        !self.scheme.is_empty()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&self.scheme.to_ascii_lowercase());
            text.push(':');
        }
        if let Some(opaque) = self.opaque {
            text.push_str(opaque);
        } else {
            if self.authority.is_some() {
                text.push_str("//");
                text.push_str(self.authority.unwrap_or_default());
            }
            text.push_str(self.path);
        }
        if let Some(query) = self.query {
            text.push('?');
            text.push_str(query);
        }
        text
    }
}

/// What a reference in a resource of that URL means: a URL and a decoded fragment. The error is Helm's.
pub(super) fn join(base: &str, reference: &str, hosts: HostRule) -> Result<(String, String), String> {
    let (reference, fragment) = split_decoded(reference)?;
    let failed = |url: &str, problem: String| format!("error in parsing {}: {problem}", quoted(url));
    let base_url = Url::parse(base, hosts).map_err(|problem| failed(base, problem))?;
    let url = Url::parse(reference, hosts).map_err(|problem| failed(reference, problem))?;
    Ok((resolve(&base_url, &url), fragment))
}

fn resolve(base: &Url<'_>, url: &Url<'_>) -> String {
    if url.is_absolute() {
        let path = clean(url.path);
        return Url {
            path: &path,
            ..url.clone()
        }
        .text();
    }
    if base.opaque.is_some() {
        return base.text();
    }
    let scheme = base.scheme;
    if url.authority.is_some() {
        let path = clean(url.path);
        return Url {
            scheme,
            path: &path,
            ..url.clone()
        }
        .text();
    }
    let query = if url.path.is_empty() && url.query.is_none() {
        base.query
    } else {
        url.query
    };
    let path = match url.path {
        "" => base.path.to_owned(),
        path if path.starts_with('/') => path.to_owned(),
        path => {
            let folder = base.path.rfind('/').map_or("", |slash| &base.path[..=slash]);
            format!("{folder}{path}")
        }
    };
    let path = clean(&path);
    Url {
        path: &path,
        query,
        ..base.clone()
    }
    .text()
}

/// A path as a URL may have it: as written, or escaped anew where that has characters that none may have.
fn escaped(path: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]%/".contains(&byte);
    if path.bytes().all(is_plain) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(as_go_writes(path))
}

/// A path escaped anew.
fn as_go_writes(path: &str) -> String {
    let path = decode(path).unwrap_or_default();
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        push_escaped(byte, b"-_.~$&+,/:;=@", &mut text);
    }
    text
}

/// The decoded parts of the path of a URL; none when it is as Go writes it.
pub(super) fn odd_path(text: &str, hosts: HostRule) -> Result<Vec<String>, String> {
    let path = Url::parse(split(text).0, hosts)?.path;
    if path == as_go_writes(path) {
        return Ok(Vec::new());
    }
    path.split('/').map(decode).collect()
}

fn push_escaped(byte: u8, plain: &[u8], text: &mut String) {
    if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
        text.push(char::from(byte));
    } else {
        // Writing to a string cannot fail.
        let _ = write!(text, "%{byte:02X}");
    }
}

/// A path without `.` and `..`; it starts with a slash unless it is empty.
fn clean(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
    let path = &escaped(path);
    let mut parts: Vec<&str> = Vec::new();
    let relative = path.strip_prefix('/').unwrap_or(path);
    for part in relative.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if matches!(relative.rsplit('/').next(), Some("." | "..")) {
        parts.push("");
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_in_go() {
        for (base, reference, url, fragment) in [
            (
                "file:///values.schema.json",
                "#/a%20b",
                "file:///values.schema.json",
                "/a b",
            ),
            ("file:///values.schema.json", "other.json#x", "file:///other.json", "x"),
            ("https://a.example/b/c", "../d", "https://a.example/d", ""),
            ("https://a.example/b/c?q", "", "https://a.example/b/c?q", ""),
            (
                "https://a.example/b/c",
                "//b.example/x/./y",
                "https://b.example/x/y",
                "",
            ),
            ("https://a.example", "c", "https://a.example/c", ""),
            ("urn:x:y", "#z", "urn:x:y", "z"),
            ("file:///a", "urn:x:y#z", "urn:x:y", "z"),
        ] {
            assert_eq!(
                join(base, reference, HostRule::Any),
                Ok((url.to_owned(), fragment.to_owned())),
                "{base} {reference}"
            );
        }
    }

    #[test]
    fn broken_urls_are_told_in_gos_words() {
        for (text, problem) in [
            ("a b\n", "parse \"a b\\n\": net/url: invalid control character in URL"),
            (":a", "parse \":a\": missing protocol scheme"),
            ("1:a", "parse \"1:a\": first path segment in URL cannot contain colon"),
            ("/%zz", "parse \"/%zz\": invalid URL escape \"%zz\""),
            (
                "http://a b/",
                "parse \"http://a b/\": invalid character \" \" in host name",
            ),
            ("http://a:b/", "parse \"http://a:b/\": invalid port \":b\" after host"),
            ("http://[a/", "parse \"http://[a/\": missing ']' in host"),
        ] {
            assert_eq!(Url::parse(text, HostRule::Any).map(|_| ()), Err(problem.to_owned()));
        }
    }
}
