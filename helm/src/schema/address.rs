//! URLs of schemas: how Go reads them, what is wrong with them in Go's words, and how a reference is resolved. Nothing is ever fetched.

use std::fmt::Write as _;

use crate::format::quoted;

/// What a URL is made of, the fragment aside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Url<'a> {
    scheme: &'a str,
    /// What follows the scheme when that is no path.
    opaque: Option<&'a str>,
    pub(super) authority: Option<&'a str>,
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
        if byte.is_ascii_alphanumeric() || b"-_.~$&+:=@/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
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
    /// Reads a URL as Go's `url.Parse` does. The error is Go's.
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let (url, fragment) = split(text);
        let failed = |shown: &str, problem: String| format!("parse {}: {problem}", quoted(shown));
        let parsed = Self::parse_before_fragment(url).map_err(|problem| failed(url, problem))?;
        decode(fragment).map_err(|problem| failed(text, problem))?;
        Ok(parsed)
    }

    fn parse_before_fragment(text: &'a str) -> Result<Self, String> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (scheme, rest) = scheme(text)?;
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
        if !rest.starts_with('/') {
            if !scheme.is_empty() {
                url.opaque = Some(rest);
                url.path = "";
                return Ok(url);
            }
            if rest.split('/').next().is_some_and(|first| first.contains(':')) {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        if let Some(after) = rest.strip_prefix("//")
            && (!scheme.is_empty() || !after.starts_with('/'))
        {
            let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
            check_authority(authority)?;
            (url.authority, url.path) = (Some(authority), path);
        }
        decode(url.path)?;
        Ok(url)
    }

    pub(super) fn is_absolute(&self) -> bool {
        !self.scheme.is_empty()
    }

    pub(super) fn scheme(&self) -> String {
        self.scheme.to_ascii_lowercase()
    }

    pub(super) fn path(&self) -> &'a str {
        self.path
    }

    /// The host, without brackets and port.
    pub(super) fn host_name(&self) -> &'a str {
        let host = self.authority.unwrap_or_default();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        if let Some(inner) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            return inner.0;
        }
        host.rsplit_once(':').map_or(host, |(name, _)| name)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if !self.scheme.is_empty() {
            text.push_str(&self.scheme());
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
pub(super) fn join(base: &str, reference: &str) -> Result<(String, String), String> {
    let (reference, fragment) = split_decoded(reference)?;
    let failed = |url: &str, problem: String| format!("error in parsing {}: {problem}", quoted(url));
    let base_url = Url::parse(base).map_err(|problem| failed(base, problem))?;
    let url = Url::parse(reference).map_err(|problem| failed(reference, problem))?;
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

/// A path without `.` and `..`; it starts with a slash unless it is empty.
fn clean(path: &str) -> String {
    if path.is_empty() {
        return String::new();
    }
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

fn scheme(text: &str) -> Result<(&str, &str), String> {
    for (position, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if position > 0 => {}
            b':' if position > 0 => return Ok((&text[..position], &text[position + 1..])),
            b':' => return Err("missing protocol scheme".to_owned()),
            _ => break,
        }
    }
    Ok(("", text))
}

fn check_authority(authority: &str) -> Result<(), String> {
    let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let is_user = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !user.bytes().all(is_user) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let port = if host.starts_with('[') {
        let end = host.rfind(']').ok_or("missing ']' in host")?;
        &host[end + 1..]
    } else {
        host.rfind(':').map_or("", |colon| &host[colon..])
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(':')
            .is_some_and(|port| port.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_port {
        return Err(format!("invalid port {} after host", quoted(port)));
    }
    let is_host =
        |byte: u8| !byte.is_ascii() || byte.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~%".contains(&byte);
    match host.bytes().find(|byte| !is_host(*byte)) {
        Some(byte) => Err(format!(
            "invalid character {} in host name",
            quoted(&char::from(byte).to_string())
        )),
        None => decode(host).map(|_| ()),
    }
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
                join(base, reference),
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
            assert_eq!(Url::parse(text).map(|_| ()), Err(problem.to_owned()));
        }
    }
}
