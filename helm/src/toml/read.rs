//! Reading a TOML text: lines with tables and keys, and their values.

use std::rc::Rc;

use super::cursor::{Cursor, END, Problem, Read, is_blank, is_line_end};
use super::strings::shown;
use super::tables::{Node, Table, Tables, to_map};
use super::{Dialect, numbers, strings};
use crate::bounds::Walk;
use crate::format::quoted;
use crate::text::{find, is_letter, lossy};
use crate::value::{Bytes, Map, Value};

/// Why a template gets no values.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The text of the decoder's error, which a template gets in their place.
    Wrong(String),
    /// What the function fails with.
    Failed(String),
}

/// The values of a text.
pub(crate) fn read(text: &[u8], dialect: Dialect) -> Result<Map, Unread> {
    let text = [&b"\xff\xfe"[..], b"\xfe\xff", b"\xef\xbb\xbf"]
        .into_iter()
        .find_map(|mark| text.strip_prefix(mark))
        .unwrap_or(text);
    if find(&text[..text.len().min(6)], b"\0").is_some() {
        let problem = "files cannot contain NULL bytes; probably using UTF-16; TOML files must be UTF-8";
        return Err(Unread::Wrong(format!("toml: line 1: {problem}")));
    }
    let mut reader = Reader {
        cursor: Cursor::new(text),
        tables: Tables::new(dialect),
        walk: Walk::copying(),
        dialect,
    };
    match reader.document() {
        Ok(()) => Ok(to_map(&reader.tables.root)),
        Err(Problem::Wrong { line, message }) => {
            let last_key = lossy(&reader.tables.last_key());
            Err(Unread::Wrong(if last_key.is_empty() {
                format!("toml: line {line}: {message}")
            } else {
                format!("toml: line {line} (last key {}): {message}", quoted(&last_key))
            }))
        }
        Err(Problem::Broken(problem)) => Err(Unread::Failed(problem)),
        Err(Problem::Bound(bound)) => Err(Unread::Failed(bound.to_string())),
    }
}

struct Reader<'t> {
    cursor: Cursor<'t>,
    tables: Tables,
    walk: Walk,
    dialect: Dialect,
}

impl Reader<'_> {
    fn document(&mut self) -> Read<()> {
        loop {
            match self.cursor.peek()? {
                END => return Ok(()),
                character if is_blank(character) || is_line_end(character) => {
                    self.cursor.next()?;
                    continue;
                }
                '#' => {
                    self.comment()?;
                    continue;
                }
                '[' => {
                    self.cursor.next()?;
                    self.table_header()?;
                }
                _ => {
                    let outer = self.tables.context.clone();
                    self.key_value(0)?;
                    self.tables.context = outer;
                    self.tables.key = Bytes::from([]);
                }
            }
            self.line_end()?;
        }
    }

    /// Passes a comment up to the end of its line.
    fn comment(&mut self) -> Read<()> {
        self.cursor.skip(|character| !is_line_end(character))?;
        Ok(())
    }

    fn line_end(&mut self) -> Read<()> {
        match self.cursor.skip_blanks()? {
            '#' => self.comment(),
            END => Ok(()),
            character if is_line_end(character) => Ok(()),
            other => Err(self.cursor.wrong(format!(
                "expected a top-level item to end with a newline, comment, or EOF, but got {} instead",
                shown(other)
            ))),
        }
    }

    fn table_header(&mut self) -> Read<()> {
        let is_one_of_many = self.cursor.accept('[')?;
        let mut key = Vec::new();
        loop {
            match self.cursor.skip_blanks()? {
                ']' | END => {
                    let problem = "unexpected end of table name (table names cannot be empty)";
                    return Err(self.cursor.wrong(problem));
                }
                '.' => {
                    let problem = "unexpected table separator (table names cannot be empty)";
                    return Err(self.cursor.wrong(problem));
                }
                first => self.key_part(first, &mut key)?,
            }
            self.cursor.skip_blanks()?;
            match self.cursor.next()? {
                '.' => {}
                ']' => break,
                other => {
                    let problem = format!(
                        "expected '.' or ']' to end table name, but got {} instead",
                        shown(other)
                    );
                    return Err(self.cursor.wrong_about(other, problem));
                }
            }
        }
        if is_one_of_many {
            let other = self.cursor.next()?;
            if other != ']' {
                let found = shown(other);
                let problem = format!("expected end of table array name delimiter ']', but got {found} instead");
                return Err(self.cursor.wrong_about(other, problem));
            }
        }
        self.walk.visit(key.len())?;
        self.tables.enter(&key, is_one_of_many)?;
        self.tables.note_list(&Bytes::from([]), false)?;
        Ok(())
    }

    /// Reads one part of a key, which may be empty where no bare one can be.
    fn key_part(&mut self, first: char, key: &mut Vec<Bytes>) -> Read<()> {
        self.walk.visit(self.tables.context.len() + key.len())?;
        let part = if matches!(first, '"' | '\'') {
            self.cursor.next()?;
            strings::key(&mut self.cursor, first, self.dialect)?
        } else {
            let start = self.cursor.position();
            self.cursor
                .skip(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))?;
            self.cursor.since(start).to_vec()
        };
        if key.is_empty() {
            self.tables.line = self.cursor.line();
        }
        key.push(part.into());
        Ok(())
    }

    /// Reads the parts of a key up to the sign behind it.
    fn key(&mut self) -> Read<Vec<Bytes>> {
        match self.cursor.skip_blanks()? {
            '=' | END => return Err(self.cursor.wrong("unexpected '=': key name appears blank")),
            '.' => return Err(self.cursor.wrong("unexpected '.': keys cannot start with a '.'")),
            _ => {}
        }
        let mut key = Vec::new();
        loop {
            match self.cursor.skip_blanks()? {
                '=' | END => return Err(self.cursor.wrong("unexpected '='")),
                '.' => return Err(self.cursor.wrong("unexpected '.'")),
                first => self.key_part(first, &mut key)?,
            }
            self.cursor.skip_blanks()?;
            match self.cursor.next()? {
                '.' => {}
                '=' => return Ok(key),
                END => {
                    let problem = "unexpected EOF; expected key separator '='";
                    return Err(self.cursor.wrong_about(END, problem));
                }
                other => {
                    let problem = format!("expected '.' or '=', but got {} instead", shown(other));
                    return Err(if other == '\n' {
                        self.cursor.wrong_before(problem)
                    } else {
                        self.cursor.wrong_about(other, problem)
                    });
                }
            }
        }
    }

    /// Reads a key with its value into the table that is being filled. The context stays at the key; gives the parts before the last one
    /// and the value.
    fn key_value(&mut self, depth: usize) -> Read<(Vec<Bytes>, Node)> {
        let mut parts = self.key()?;
        self.tables.key = parts.pop().unwrap_or_else(|| Bytes::from([]));
        for part in &parts {
            self.tables.enter_part(part)?;
        }
        let node = self.value(depth, false)?;
        self.tables.set_key(node.clone())?;
        Ok((parts, node))
    }

    fn value(&mut self, depth: usize, is_in_list: bool) -> Read<Node> {
        self.walk.visit(depth + self.tables.context.len())?;
        self.cursor.skip_blanks()?;
        let first = self.cursor.peek()?;
        if first.is_ascii_digit() {
            return numbers::unsigned(&mut self.cursor, self.dialect).map(Node::Plain);
        }
        let start = self.cursor.position();
        self.cursor.next()?;
        match first {
            '[' => return self.list(depth),
            '{' => return self.inline_table(depth, is_in_list),
            '"' | '\'' => {
                let text = strings::value(&mut self.cursor, first, self.dialect)?;
                return Ok(Node::Plain(Value::from(text)));
            }
            '.' => return Err(self.cursor.wrong("floats must start with a digit, not '.'")),
            '-' | '+' => return numbers::signed(&mut self.cursor).map(Node::Plain),
            'i' | 'n' if self.special_float()? => return numbers::float(&self.cursor, start).map(Node::Plain),
            _ => {}
        }
        if is_letter(first) {
            // What was taken for a float stays passed, but for one rune.
            self.cursor.go_back(first.len_utf8());
            return self.boolean().map(Node::Plain);
        }
        Err(match first {
            END => self.cursor.wrong_about(END, "unexpected EOF; expected value"),
            '\n' => self.cursor.wrong_before("expected value but found '\\n' instead"),
            other => self
                .cursor
                .wrong(format!("expected value but found {} instead", shown(other))),
        })
    }

    /// Passes the rest of `inf` or `nan`, and of mixtures of both.
    fn special_float(&mut self) -> Read<bool> {
        let cursor = &mut self.cursor;
        Ok((cursor.accept('n')? && cursor.accept('f')?) || (cursor.accept('a')? && cursor.accept('n')?))
    }

    fn boolean(&mut self) -> Read<Value> {
        let start = self.cursor.position();
        self.cursor.skip(is_letter)?;
        match self.cursor.since(start) {
            b"true" => Ok(Value::Bool(true)),
            b"false" => Ok(Value::Bool(false)),
            other => {
                let found = quoted(&lossy(other));
                Err(self.cursor.wrong(format!("expected value but found {found} instead")))
            }
        }
    }

    fn list(&mut self, depth: usize) -> Read<Node> {
        let key = self.tables.key.clone();
        self.tables.note_list(&key, true)?;
        let mut items = Vec::new();
        loop {
            match self.after_blank_lines()? {
                ',' => {
                    self.cursor.next()?;
                    return Err(self.cursor.wrong("unexpected comma"));
                }
                ']' => break,
                _ => items.push(self.value(depth + 1, true)?),
            }
            match self.after_blank_lines()? {
                ',' => {
                    self.cursor.next()?;
                }
                ']' => break,
                _ => {
                    let words = "expected a comma (',') or array terminator (']'), but got";
                    return Err(self.unexpected(words, ""));
                }
            }
        }
        self.cursor.next()?;
        Ok(Node::List(Rc::new(items)))
    }

    /// The next rune behind blanks, line ends and comments.
    fn after_blank_lines(&mut self) -> Read<char> {
        loop {
            let next = self
                .cursor
                .skip(|character| is_blank(character) || is_line_end(character))?;
            if next != '#' {
                return Ok(next);
            }
            self.comment()?;
        }
    }

    /// The error about the next rune.
    fn unexpected(&mut self, before: &str, after: &str) -> Problem {
        match self.cursor.next() {
            Ok(END) => self.cursor.wrong_about(END, format!("{before} end of file{after}")),
            Ok(other) => self.cursor.wrong(format!("{before} '{other}'{after}")),
            Err(problem) => problem,
        }
    }

    fn inline_table(&mut self, depth: usize, is_in_list: bool) -> Read<Node> {
        let table = Table::default();
        let (outer_context, outer_key) = (self.tables.context.clone(), self.tables.key.clone());
        let mut context = outer_context.clone();
        context.push(outer_key.clone());
        self.tables.context.clone_from(&context);
        self.tables.key = Bytes::from([]);
        self.tables.add_implicit(&context)?;
        self.tables.enter(&context, is_in_list)?;
        while self.next_inline()? {
            let (parts, node) = self.key_value(depth + 1)?;
            let mut inner = Rc::clone(&table);
            for part in parts {
                let found = inner
                    .borrow_mut()
                    .entry(part)
                    .or_insert_with(|| Node::Table(Table::default()))
                    .clone();
                let Node::Table(found) = found else {
                    let key = quoted(&lossy(&super::tables::dotted(&self.tables.context)));
                    return Err(Problem::Wrong {
                        line: self.tables.line,
                        message: format!("{key} is not a table"),
                    });
                };
                inner = found;
            }
            inner.borrow_mut().insert(self.tables.key.clone(), node);
            self.tables.context.clone_from(&context);
            if !self.after_inline()? {
                break;
            }
        }
        self.tables.context = outer_context;
        self.tables.key = outer_key;
        Ok(Node::Table(table))
    }

    /// Whether one more key follows; passes the end of the table otherwise.
    fn next_inline(&mut self) -> Read<bool> {
        match self.after_inline_blanks()? {
            ',' => {
                self.cursor.next()?;
                Err(self.cursor.wrong("unexpected comma"))
            }
            '}' => {
                self.cursor.next()?;
                Ok(false)
            }
            _ => Ok(true),
        }
    }

    /// Whether a comma follows a value; passes the end of the table otherwise.
    fn after_inline(&mut self) -> Read<bool> {
        loop {
            match self.after_inline_blanks()? {
                ',' => {
                    self.cursor.next()?;
                    if self.cursor.skip_blanks()? != '}' {
                        return Ok(true);
                    }
                    if self.dialect == Dialect::V1_0 {
                        return Err(self.cursor.wrong("trailing comma not allowed in inline tables"));
                    }
                }
                '}' => {
                    self.cursor.next()?;
                    return Ok(false);
                }
                _ => {
                    let words = "expected a comma or an inline table terminator '}', but got";
                    return Err(self.unexpected(words, " instead"));
                }
            }
        }
    }

    /// The next rune behind blanks and, since TOML 1.1, line ends and comments.
    fn after_inline_blanks(&mut self) -> Read<char> {
        if self.dialect == Dialect::V1_1 {
            return self.after_blank_lines();
        }
        loop {
            let next = self.cursor.skip_blanks()?;
            if next == '#' {
                self.comment()?;
            } else if is_line_end(next) {
                self.cursor.next()?;
                return Err(self.cursor.wrong_before("newlines not allowed within inline tables"));
            } else {
                return Ok(next);
            }
        }
    }
}
