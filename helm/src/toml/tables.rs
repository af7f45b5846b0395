//! The tables that a TOML text has filled so far, and which of them a later line may still extend.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use super::cursor::{Problem, Read};
use super::{Dialect, quoted_key};
use crate::bounds::{BoundError, check_document, read};
use crate::text::lossy;
use crate::value::{Bytes, Element, List, Map, Value};

/// A table that others may hold too.
pub(super) type Table = Rc<RefCell<BTreeMap<Bytes, Node>>>;

/// A value behind its key.
#[derive(Clone)]
pub(super) enum Node {
    Plain(Value),
    List(Rc<Vec<Self>>),
    Table(Table),
    /// What double brackets fill.
    Tables(Rc<RefCell<Vec<Table>>>),
}

impl Node {
    fn is_list(&self) -> bool {
        matches!(self, Self::List(_))
    }

    /// What a template gets.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::List(items) => Value::List(List::new(items.iter().map(Self::to_value).collect())),
            Self::Table(table) => Value::Map(to_map(table)),
            Self::Tables(tables) => {
                let tables = tables.borrow();
                let maps = tables.iter().map(|table| Value::Map(to_map(table)));
                Value::List(List::of(Element::Map, maps.collect()))
            }
        }
    }

    /// The table that a key goes on in.
    fn inner(&self) -> Option<Table> {
        match self {
            Self::Table(table) => Some(Rc::clone(table)),
            Self::Tables(tables) => tables.borrow().last().map(Rc::clone),
            Self::Plain(_) | Self::List(_) => None,
        }
    }
}

pub(super) fn to_map(table: &Table) -> Map {
    let table = table.borrow();
    table.iter().map(|(key, node)| (key.clone(), node.to_value())).collect()
}

/// All tables, and the place in them where the reader is.
pub(super) struct Tables {
    pub(super) root: Table,
    /// The key of the table that is being filled.
    pub(super) context: Vec<Bytes>,
    /// The last part of the key whose value is read.
    pub(super) key: Bytes,
    /// The line of that key.
    pub(super) line: i64,
    /// Tables that exist because of what is in them.
    implicit: HashSet<Vec<u8>>,
    /// Keys whose value was written in brackets.
    lists: HashSet<Vec<u8>>,
    /// Bytes that all these names take, which may be many times those of the text.
    noted: usize,
    dialect: Dialect,
}

impl Tables {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            root: Table::default(),
            context: Vec::new(),
            key: Bytes::from([]),
            line: 1,
            implicit: HashSet::new(),
            lists: HashSet::new(),
            noted: 0,
            dialect,
        }
    }

    /// The key that errors name.
    pub(super) fn last_key(&self) -> Vec<u8> {
        let mut text = dotted(&self.context);
        if !self.key.is_empty() {
            if !text.is_empty() {
                text.push(b'.');
            }
            text.extend_from_slice(&self.key);
        }
        text
    }

    fn taken(&self, message: String) -> Problem {
        Problem::Wrong {
            line: self.line,
            message,
        }
    }

    /// The name of a key, which is paid for: every line may have to make that of a long table.
    fn name(key: &[Bytes]) -> Result<Vec<u8>, BoundError> {
        let name = dotted(key);
        read(name.len())?;
        Ok(name)
    }

    fn note(&mut self, name: &[u8]) -> Result<(), BoundError> {
        self.noted += name.len();
        check_document(self.noted)
    }

    pub(super) fn add_implicit(&mut self, key: &[Bytes]) -> Result<(), BoundError> {
        let name = Self::name(key)?;
        self.note(&name)?;
        self.implicit.insert(name);
        Ok(())
    }

    /// Goes into the table of a dotted key, one part further.
    pub(super) fn enter_part(&mut self, part: &Bytes) -> Read<()> {
        let mut key = self.context.clone();
        key.push(part.clone());
        self.add_implicit(&key)?;
        self.enter(&key, false)
    }

    /// Goes into a table from the top, making it and all around it; into a new one of several, if it is one of those.
    pub(super) fn enter(&mut self, key: &[Bytes], is_one_of_many: bool) -> Read<()> {
        let Some((last, parents)) = key.split_last() else {
            return Ok(());
        };
        let mut table = Rc::clone(&self.root);
        for (position, part) in parents.iter().enumerate() {
            let so_far = &key[..=position];
            if !table.borrow().contains_key(part) {
                self.add_implicit(so_far)?;
                table.borrow_mut().insert(part.clone(), Node::Table(Table::default()));
            }
            let inner = table.borrow().get(part).and_then(Node::inner);
            table = inner.ok_or_else(|| {
                let key = lossy(&dotted(so_far));
                self.taken(format!("Key '{key}' was already created as a hash."))
            })?;
        }
        self.context = parents.to_vec();
        if is_one_of_many {
            let mut entries = table.borrow_mut();
            let node = entries
                .entry(last.clone())
                .or_insert_with(|| Node::Tables(Rc::default()));
            let Node::Tables(tables) = node else {
                let key = lossy(&dotted(key));
                return Err(self.taken(format!(
                    "Key '{key}' was already created and cannot be used as an array."
                )));
            };
            tables.borrow_mut().push(Table::default());
        } else {
            self.set(last, Node::Table(Table::default()))?;
        }
        self.context.push(last.clone());
        Ok(())
    }

    /// Gives a key of the table that is being filled its value. A table that was there only because of what is in it stays.
    pub(super) fn set(&mut self, key: &Bytes, node: Node) -> Read<()> {
        let mut table = Rc::clone(&self.root);
        for (position, part) in self.context.iter().enumerate() {
            let name = || lossy(&dotted(&self.context[..=position]));
            let Some(found) = table.borrow().get(part).cloned() else {
                return Err(Problem::Broken(format!(
                    "BUG: Context for key '{}' has not been established.\n\n",
                    name()
                )));
            };
            table = found
                .inner()
                .ok_or_else(|| self.taken(format!("Key '{}' has already been defined.", name())))?;
        }
        let mut full = self.context.clone();
        full.push(key.clone());
        let name = Self::name(&full)?;
        if !table.borrow().contains_key(key) {
            table.borrow_mut().insert(key.clone(), node);
            return Ok(());
        }
        let is_list = self.lists.contains(&name);
        let was_implicit = self.implicit.remove(&name);
        let may_replace = was_implicit || is_list && self.dialect == Dialect::V1_0;
        if !may_replace {
            return Err(self.taken(format!("Key '{}' has already been defined.", lossy(&name))));
        }
        if is_list {
            table.borrow_mut().insert(key.clone(), node);
        }
        Ok(())
    }

    /// Notes whether the value of a key is a list. An empty key stands for the table that is being filled.
    pub(super) fn note_list(&mut self, key: &Bytes, is_list: bool) -> Result<(), BoundError> {
        let mut full = self.context.clone();
        if !key.is_empty() || full.is_empty() {
            full.push(key.clone());
        }
        let name = Self::name(&full)?;
        if is_list {
            self.note(&name)?;
            self.lists.insert(name);
        } else {
            self.lists.remove(&name);
        }
        Ok(())
    }

    /// Gives the key its value, and notes what it is.
    pub(super) fn set_key(&mut self, node: Node) -> Read<()> {
        let key = self.key.clone();
        let is_list = node.is_list();
        self.set(&key, node)?;
        Ok(self.note_list(&key, is_list)?)
    }
}

/// A key as errors name it.
pub(super) fn dotted(key: &[Bytes]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = key.iter().map(|part| quoted_key(part)).collect();
    parts.join(&b'.')
}
