//! Finds what is drawn: puts several texts side by side and keeps the places where the real ones differ.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{
    Unlike, class, moment,
    pem::{self, Pem},
    tokens::{self, Kind, Line, Token},
};

/// Base64 of base64 of base64 is what charts do at most.
const DEPTH: usize = 4;

/// A value that is drawn: what the real answers and ours have in one place.
#[derive(Debug)]
pub(super) struct Value {
    /// Counted from 1, in our answer.
    pub(super) line: usize,
    pub(super) theirs: Vec<Vec<u8>>,
    pub(super) ours: Vec<u8>,
    /// How many bytes of our answer it takes.
    pub(super) weight: usize,
    nature: Nature,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nature {
    Text,
    Moment,
    Pem,
}

impl Value {
    pub(super) fn unlike(&self, reason: impl AsRef<str>) -> Unlike {
        unlike(self.line, reason.as_ref())
    }

    /// Whether it is alike, seen alone.
    pub(super) fn check(&self) -> Result<(), Unlike> {
        let checked = match self.nature {
            Nature::Text => class::check(&self.theirs, &self.ours),
            Nature::Moment => moment::check(&self.theirs, &self.ours),
            Nature::Pem => pem::check(&self.theirs, &self.ours),
        };
        checked.map_err(|reason| self.unlike(reason))
    }

    /// What makes it the same value in another place: of a PEM block, what is in it, however it is laid out.
    pub(super) fn meaning(&self) -> (Vec<Vec<u8>>, Vec<u8>) {
        self.pems().map_or_else(
            || (self.theirs.clone(), self.ours.clone()),
            |(theirs, ours)| (theirs.into_iter().map(|block| block.der).collect(), ours.der),
        )
    }

    /// The blocks that it is.
    pub(super) fn pems(&self) -> Option<(Vec<Pem<'_>>, Pem<'_>)> {
        let theirs = self
            .theirs
            .iter()
            .map(|block| Pem::read(block))
            .collect::<Option<_>>()?;
        Some((theirs, Pem::read(&self.ours)?))
    }
}

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    pub(super) values: Vec<Value>,
    /// Bytes of lines and words that are the same but in another order each time.
    pub(super) moved: usize,
    depth: usize,
}

impl Alignment {
    pub(super) fn texts(&mut self, theirs: &[&[u8]], ours: &[u8]) -> Result<(), Unlike> {
        let theirs: Vec<_> = theirs.iter().map(|text| tokens::lines(text)).collect();
        let ours = tokens::lines(ours);
        if let Some(moved) = moved(&theirs, &ours, |line| joined(&line.tokens)) {
            self.moved += moved.ok_or_else(|| unlike(1, "Helm has the same lines each time, in another order"))?;
            return Ok(());
        }
        self.lines(&theirs, &ours)
    }

    fn lines(&mut self, theirs: &[Vec<Line<'_>>], ours: &[Line<'_>]) -> Result<(), Unlike> {
        for (index, our_line) in ours.iter().enumerate() {
            let their_lines: Option<Vec<_>> = theirs.iter().map(|lines| lines.get(index)).collect();
            let Some(their_lines) = their_lines else {
                return Err(unlike(our_line.number, "Helm's answer ends before"));
            };
            self.line(&their_lines, our_line)?;
        }
        if theirs.iter().any(|lines| lines.len() > ours.len()) {
            let last = ours.last().map_or(1, |line| line.number);
            return Err(unlike(last, "Helm's answer goes on"));
        }
        Ok(())
    }

    fn line(&mut self, theirs: &[&Line<'_>], ours: &Line<'_>) -> Result<(), Unlike> {
        let tokens: Vec<&[Token<'_>]> = theirs.iter().map(|line| line.tokens.as_slice()).collect();
        if let Some(moved) = moved(&tokens, &ours.tokens, |token| token.bytes.to_vec()) {
            self.moved +=
                moved.ok_or_else(|| unlike(ours.number, "Helm has the same words each time, in another order"))?;
            return Ok(());
        }
        self.tokens(&tokens, &ours.tokens, ours.number)
    }

    fn tokens(&mut self, theirs: &[&[Token<'_>]], ours: &[Token<'_>], line: usize) -> Result<(), Unlike> {
        let count = theirs.first().map_or(0, |tokens| tokens.len());
        if theirs.iter().all(|tokens| tokens.len() == count) {
            if ours.len() != count {
                return Err(unlike(line, "the line is built otherwise"));
            }
            for (index, our_token) in ours.iter().enumerate() {
                let column: Vec<_> = theirs.iter().map(|tokens| tokens[index]).collect();
                self.token(&column, *our_token, line)?;
            }
            return Ok(());
        }
        // What is drawn has marks in it: all of it is one value, up to what never changes before and behind it.
        let theirs: Vec<Vec<u8>> = theirs.iter().map(|tokens| joined(tokens)).collect();
        self.drawn(&theirs, &joined(ours), line)
    }

    fn token(&mut self, theirs: &[Token<'_>], ours: Token<'_>, line: usize) -> Result<(), Unlike> {
        if theirs.iter().all(|token| *token == theirs[0]) {
            return if ours == theirs[0] {
                Ok(())
            } else {
                Err(unlike(line, "Helm always has something else here"))
            };
        }
        let texts: Vec<&[u8]> = theirs.iter().map(|token| token.bytes).collect();
        let kind = theirs[0].kind;
        let one_kind = theirs.iter().all(|token| token.kind == kind);
        if one_kind && ours.kind != kind && kind != Kind::Mark {
            return Err(unlike(line, "Helm draws something of another kind here"));
        }
        match kind {
            Kind::Pem if one_kind => self.push(Nature::Pem, &texts, ours.bytes, line),
            Kind::Moment if one_kind => self.push(Nature::Moment, &texts, ours.bytes, line),
            Kind::Word if one_kind => return self.word(&texts, ours.bytes, line),
            _ => {
                let theirs: Vec<Vec<u8>> = texts.iter().map(|text| text.to_vec()).collect();
                return self.drawn(&theirs, ours.bytes, line);
            }
        }
        Ok(())
    }

    fn word(&mut self, theirs: &[&[u8]], ours: &[u8], line: usize) -> Result<(), Unlike> {
        let decoded: Option<Vec<_>> = theirs.iter().map(|text| decoded(text)).collect();
        if let Some(theirs) = decoded.filter(|_| self.depth < DEPTH) {
            let Some(ours) = self::decoded(ours) else {
                return Err(unlike(line, "Helm has base64 of a text here"));
            };
            let theirs: Vec<&[u8]> = theirs.iter().map(Vec::as_slice).collect();
            return self.inside(&theirs, &ours, line);
        }
        if moment::are_epochs(theirs) {
            self.push(Nature::Moment, theirs, ours, line);
            return Ok(());
        }
        let theirs: Vec<Vec<u8>> = theirs.iter().map(|text| text.to_vec()).collect();
        self.drawn(&theirs, ours, line)
    }

    /// The same with decoded texts. What is told of lines is told of the line that they stand in.
    fn inside(&mut self, theirs: &[&[u8]], ours: &[u8], line: usize) -> Result<(), Unlike> {
        let mut inner = Self {
            depth: self.depth + 1,
            ..Self::default()
        };
        inner.texts(theirs, ours).map_err(|unlike| Unlike {
            line,
            reason: format!("in line {} of the decoded base64: {}", unlike.line, unlike.reason),
        })?;
        self.moved += inner.moved * 4 / 3;
        self.values.extend(inner.values.into_iter().map(|value| Value {
            line,
            weight: value.weight * 4 / 3,
            ..value
        }));
        Ok(())
    }

    /// A value with what never changes before and behind it.
    fn drawn(&mut self, theirs: &[Vec<u8>], ours: &[u8], line: usize) -> Result<(), Unlike> {
        let shortest = theirs.iter().map(Vec::len).min().unwrap_or(0);
        let same = |pick: &dyn Fn(&[u8]) -> Option<u8>| theirs.iter().all(|text| pick(text) == pick(&theirs[0]));
        let before = (0..shortest)
            .take_while(|index| same(&|text: &[u8]| text.get(*index).copied()))
            .count();
        let behind = (0..shortest - before)
            .take_while(|index| same(&|text: &[u8]| text.iter().rev().nth(*index).copied()))
            .count();
        let (prefix, suffix) = (&theirs[0][..before], &theirs[0][theirs[0].len() - behind..]);
        let middle = |text: &[u8]| {
            let text = text.strip_prefix(prefix)?;
            text.strip_suffix(suffix).map(<[u8]>::to_vec)
        };
        let Some(our_middle) = middle(ours) else {
            return Err(unlike(line, "Helm always has something else around what it draws here"));
        };
        let middles: Vec<Vec<u8>> = theirs.iter().filter_map(|text| middle(text)).collect();
        let middles: Vec<&[u8]> = middles.iter().map(Vec::as_slice).collect();
        self.push(Nature::Text, &middles, &our_middle, line);
        Ok(())
    }

    fn push(&mut self, nature: Nature, theirs: &[&[u8]], ours: &[u8], line: usize) {
        self.values.push(Value {
            line,
            theirs: theirs.iter().map(|text| text.to_vec()).collect(),
            ours: ours.to_vec(),
            weight: ours.len(),
            nature,
        });
    }
}

/// Base64 of a text that a person could read; anything else is not looked into.
fn decoded(word: &[u8]) -> Option<Vec<u8>> {
    let text = STANDARD.decode(word).ok()?;
    let readable = str::from_utf8(&text).ok()?.chars();
    let mut readable = readable.filter(|character| !matches!(character, '\n' | '\r' | '\t'));
    (!text.is_empty() && readable.all(|character| !character.is_control())).then_some(text)
}

fn joined(tokens: &[Token<'_>]) -> Vec<u8> {
    tokens.iter().flat_map(|token| token.bytes).copied().collect()
}

/// Nothing unless the real answers have the same parts in another order each time. Then the bytes of those that stand elsewhere each time; nothing
/// of that if ours has others, or moves what stays.
#[expect(clippy::option_option, reason = "whether it is asked for, and whether it is so")]
fn moved<T>(theirs: &[impl AsRef<[T]>], ours: &[T], bytes: impl Fn(&T) -> Vec<u8>) -> Option<Option<usize>> {
    let parts = |all: &[T]| all.iter().map(&bytes).collect::<Vec<_>>();
    let sorted = |parts: &[Vec<u8>]| {
        let mut parts = parts.to_vec();
        parts.sort();
        parts
    };
    let theirs: Vec<_> = theirs.iter().map(|all| parts(all.as_ref())).collect();
    let expected = sorted(&theirs[0]);
    if theirs.iter().all(|parts| *parts == theirs[0]) || theirs.iter().any(|parts| sorted(parts) != expected) {
        return None;
    }
    let ours = parts(ours);
    if sorted(&ours) != expected {
        return Some(None);
    }
    let stays = |index: usize| theirs.iter().all(|parts| parts[index] == theirs[0][index]);
    let (staying, moving): (Vec<_>, Vec<_>) = (0..ours.len()).partition(|index| stays(*index));
    let kept = staying.into_iter().all(|index| ours[index] == theirs[0][index]);
    Some(kept.then(|| moving.into_iter().map(|index| ours[index].len()).sum()))
}

fn unlike(line: usize, reason: &str) -> Unlike {
    Unlike {
        line,
        reason: reason.to_owned(),
    }
}
