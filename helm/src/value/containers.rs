//! Go's slices and maps: what is shared, and how they are taken apart. Knows nothing of functions or printing.

use std::cell::{OnceCell, Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Bytes, Value};

/// What a map or a list declares about its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// `interface {}`
    Any,
    /// `string`
    Str,
    /// `int`
    Int,
    /// `[]byte`
    Bytes,
    /// `[]interface {}`
    List,
    /// `map[string]interface {}`
    Map,
    /// A Go type of the engine, by its full name.
    Named(&'static str),
}

impl Element {
    const fn name(self) -> &'static str {
        match self {
            Self::Any => "interface {}",
            Self::Str => "string",
            Self::Int => "int",
            Self::Bytes => "[]uint8",
            Self::List => "[]interface {}",
            Self::Map => "map[string]interface {}",
            Self::Named(name) => name,
        }
    }

    /// What reading an absent key gives: the zero value of the element type.
    pub fn zero(self) -> Value {
        match self {
            Self::Str => Value::from(""),
            Self::Int => Value::int(0),
            Self::Bytes => Value::Bytes(Rc::from([])),
            Self::List => Value::List(List::default()),
            Self::Any | Self::Map | Self::Named(_) => Value::Nil,
        }
    }
}

/// A Go slice. Cheap to clone; the elements never change, but a list of strings can be sorted in place.
#[derive(Clone)]
pub struct List {
    items: Rc<Items>,
}

/// What all who hold a list share.
struct Items {
    element: Element,
    elements: Vec<Value>,
    /// Go's nil of a slice type: a slice that was never made.
    is_nil: bool,
    /// The same elements after the one change that exists.
    sorted: OnceCell<Vec<Value>>,
}

impl Default for List {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl List {
    /// A `[]interface {}`.
    pub fn new(items: Vec<Value>) -> Self {
        Self::of(Element::Any, items)
    }

    /// A slice with another element type; the items must have that type.
    pub fn of(element: Element, items: Vec<Value>) -> Self {
        Self::made(element, items, false)
    }

    fn made(element: Element, elements: Vec<Value>, is_nil: bool) -> Self {
        Self {
            items: Rc::new(Items {
                element,
                elements,
                is_nil,
                sorted: OnceCell::new(),
            }),
        }
    }

    /// A slice that was never made: empty, and null in JSON.
    pub fn nil(element: Element) -> Self {
        Self::made(element, Vec::new(), true)
    }

    /// Whether the slice was never made.
    pub fn is_nil(&self) -> bool {
        self.items.is_nil
    }

    /// A `[]string`.
    pub fn strings<T: Into<Bytes>>(items: impl IntoIterator<Item = T>) -> Self {
        Self::of(
            Element::Str,
            items.into_iter().map(|item| Value::Str(item.into())).collect(),
        )
    }

    /// The declared type of the elements.
    pub fn element(&self) -> Element {
        self.items.element
    }

    /// Go's name of the slice type.
    pub fn type_name(&self) -> String {
        format!("[]{}", self.element().name())
    }

    /// The elements in order.
    pub fn items(&self) -> &[Value] {
        self.items.sorted.get().unwrap_or(&self.items.elements)
    }

    /// Whether somebody else holds the same list.
    pub(crate) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.items) > 1
    }

    /// Sorts a `[]string` by its bytes, for all who share it.
    pub(crate) fn sort_strings(&self) {
        self.items.sorted.get_or_init(|| {
            let mut sorted = self.items.elements.clone();
            sorted.sort_by(|first, second| first.as_str().cmp(&second.as_str()));
            sorted
        });
    }
}

/// A Go map with string keys. Clones share the entries; ranging and printing go by key in byte order.
#[derive(Clone)]
pub struct Map {
    /// The name of its type. Behind a reference, because every value is as large as a map.
    name: Option<&'static &'static str>,
    shared: Rc<Shared>,
}

/// What all who hold a map share.
struct Shared {
    element: Element,
    entries: RefCell<Entries>,
    /// Go's nil of a map type: a map that was never made.
    is_nil: bool,
}

#[derive(Default)]
struct Entries(BTreeMap<Bytes, Value>);

impl Default for Map {
    fn default() -> Self {
        Self::of(Element::Any)
    }
}

impl Map {
    /// An empty `map[string]interface {}`.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty map with another element type; everything inserted must have that type.
    pub fn of(element: Element) -> Self {
        Self::made(element, BTreeMap::new(), false)
    }

    fn made(element: Element, entries: BTreeMap<Bytes, Value>, is_nil: bool) -> Self {
        Self {
            name: None,
            shared: Rc::new(Shared {
                element,
                entries: RefCell::new(Entries(entries)),
                is_nil,
            }),
        }
    }

    /// A map that was never made: empty, and null in JSON.
    pub(crate) fn nil(element: Element) -> Self {
        Self::made(element, BTreeMap::new(), true)
    }

    /// Whether the map was never made and nothing was set in it.
    pub(crate) fn is_nil(&self) -> bool {
        self.shared.is_nil && self.is_empty()
    }

    /// The same entries under a named map type such as `chartutil.Values`. Changes are seen through both.
    #[must_use]
    pub fn named(&self, name: &'static &'static str) -> Self {
        Self {
            name: Some(name),
            ..self.clone()
        }
    }

    /// The same entries under the plain type, as Go's assignment to an unnamed map type gives.
    #[must_use]
    pub fn unnamed(&self) -> Self {
        Self {
            name: None,
            ..self.clone()
        }
    }

    /// The name given by [`Map::named`].
    pub fn name(&self) -> Option<&'static &'static str> {
        self.name
    }

    /// Go's name of the map type: the given one, or what it is made of.
    pub fn type_name(&self) -> String {
        self.name.map_or_else(
            || format!("map[string]{}", self.element().name()),
            |name| (*name).to_owned(),
        )
    }

    /// The declared type of the values.
    pub fn element(&self) -> Element {
        self.shared.element
    }

    /// The value of a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.shared.entries.borrow().0.get(key.as_ref()).cloned()
    }

    /// Whether the key is present, also when its value is nil.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        self.shared.entries.borrow().0.contains_key(key.as_ref())
    }

    /// Sets a key for all who share the map; gives the value that was there.
    pub fn insert(&self, key: impl Into<Key>, value: impl Into<Value>) -> Option<Value> {
        self.shared.entries.borrow_mut().0.insert(key.into().0, value.into())
    }

    /// Removes a key for all who share the map.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.shared.entries.borrow_mut().0.remove(key.as_ref())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.shared.entries.borrow().0.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entries, for reading in place. No change may happen while the guard lives.
    pub fn entries(&self) -> Ref<'_, BTreeMap<Bytes, Value>> {
        Ref::map(self.shared.entries.borrow(), |entries| &entries.0)
    }

    /// The entries, for changing in place. No other access may happen while the guard lives.
    pub fn entries_mut(&self) -> RefMut<'_, BTreeMap<Bytes, Value>> {
        RefMut::map(self.shared.entries.borrow_mut(), |entries| &mut entries.0)
    }

    /// A copy of the entries in key order, for loops that may change the map.
    pub fn to_vec(&self) -> Vec<(Bytes, Value)> {
        self.entries()
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    /// The bytes of its entries, without what keys and values hold. Entries lie in groups with some places free.
    pub(crate) fn own_bytes(&self) -> usize {
        const GROUP: usize = 11;
        const FILLED: usize = 8;
        self.len().div_ceil(FILLED) * GROUP * size_of::<(Bytes, Value)>()
    }

    /// Whether somebody else holds the same map.
    pub(crate) fn is_shared(&self) -> bool {
        Rc::strong_count(&self.shared) > 1
    }

    /// Whether both are the same map, not merely equal ones.
    pub fn is_same(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.shared, &other.shared)
    }
}

/// A key given to [`Map::insert`].
pub struct Key(Bytes);

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Bytes> for Key {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl<K: Into<Key>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        pairs
            .into_iter()
            .map(|(key, value)| (key.into().0, value.into()))
            .collect::<BTreeMap<_, _>>()
            .into()
    }
}

impl From<BTreeMap<Bytes, Value>> for Map {
    fn from(entries: BTreeMap<Bytes, Value>) -> Self {
        Self::made(Element::Any, entries, false)
    }
}

/// Nested containers are taken apart in a loop, so that a template cannot overflow the stack by nesting lists deeply.
fn drop_flat(values: impl Iterator<Item = Value>) {
    let is_container = |value: &Value| matches!(value, Value::List(_) | Value::Map(_));
    let mut pending: Vec<Value> = values.filter(is_container).collect();
    while let Some(value) = pending.pop() {
        match value {
            Value::List(list) => {
                if let Some(mut items) = Rc::into_inner(list.items) {
                    pending.extend(std::mem::take(&mut items.elements).into_iter().filter(is_container));
                }
            }
            Value::Map(map) => {
                if let Some(shared) = Rc::into_inner(map.shared) {
                    let entries = std::mem::take(&mut shared.entries.borrow_mut().0);
                    pending.extend(entries.into_values().filter(is_container));
                }
            }
            _ => {}
        }
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        drop_flat(std::mem::take(&mut self.elements).into_iter());
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        drop_flat(std::mem::take(&mut self.0).into_values());
    }
}
