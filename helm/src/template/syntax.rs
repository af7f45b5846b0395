//! The syntax tree of templates: one arena of nodes for each parsed text, shared by the templates defined in it. Nodes are small and refer to
//! what they consist of by places in the arena's lists: a chart has some hundred thousand of them, and a render goes through most.
//!
//! Nothing here changes after parsing and nothing refers to values, so parsed templates can be shared between threads.

use std::ops::Range;
use std::sync::Arc;

use crate::functions::Function;
use crate::text;

/// A node of the arena of its [`Source`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeId(pub(super) u32);

/// A name of the name table of its [`Source`]: a variable (`$x`) or a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(super) u32);

/// The variable `$`.
pub(super) const DOLLAR: Name = Name(0);

/// A parsed text with everything that its trees refer to.
#[derive(Debug)]
pub(crate) struct Source {
    /// The name that positions show.
    pub(super) name: Arc<str>,
    pub(super) text: Arc<[u8]>,
    pub(super) arena: Arena,
}

/// What the trees of a text consist of.
#[derive(Debug, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    lists: Vec<NodeId>,
    paths: Vec<Name>,
    strings: Vec<u8>,
    names: Vec<Box<str>>,
}

/// A part of a text, or of a list of an [`Arena`]. Texts are shorter than 4 GiB, and so is all that is read from them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

/// Nodes of an [`Arena`] in their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nodes(Span);

/// Names of an [`Arena`] in their order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names(Span);

/// The bytes that a string constant means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content(Span);

impl Span {
    pub(super) fn new(range: Range<usize>) -> Self {
        let place = |place| u32::try_from(place).unwrap_or(u32::MAX);
        Self {
            start: place(range.start),
            end: place(range.end),
        }
    }

    pub(super) fn start(self) -> usize {
        self.start as usize
    }

    pub(super) fn of<T>(self, all: &[T]) -> &[T] {
        &all[self.start as usize..self.end as usize]
    }

    /// Adds something to a list.
    fn added<T: Clone>(list: &mut Vec<T>, items: &[T]) -> Self {
        let start = list.len();
        list.extend_from_slice(items);
        Self::new(start..list.len())
    }

    fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl Names {
    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }
}

/// One template: the text of a file, or a definition within it.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) name: Arc<str>,
    pub(super) source: Arc<Source>,
    pub(super) root: NodeId,
}

#[derive(Debug)]
struct Node {
    /// Byte offset in the text.
    position: u32,
    kind: NodeKind,
}

/// A render of a large chart goes through megabytes of them; those that grow no longer fit into the processor's caches.
const _: () = assert!(size_of::<Node>() <= 32);

#[derive(Debug)]
pub(super) enum NodeKind {
    List(Nodes),
    Text(Span),
    Action(NodeId),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template(Box<Inclusion>),
    Break,
    Continue,
    Pipe(Pipe),
    Command(Nodes),
    Identifier(&'static Function),
    Variable { name: Name, fields: Names },
    Field(Names),
    Chain { node: NodeId, fields: Names },
    Dot,
    Nil,
    Bool(bool),
    Number(Box<Number>),
    String { quoted: Span, value: Content },
}

/// A template that another one executes.
#[derive(Debug)]
pub(super) struct Inclusion {
    pub(super) name: Arc<str>,
    pub(super) pipe: Option<NodeId>,
}

#[derive(Debug)]
pub(super) struct Branch {
    pub(super) pipe: NodeId,
    pub(super) list: NodeId,
    pub(super) else_list: Option<NodeId>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pipe {
    pub(super) is_assignment: bool,
    pub(super) declared: Names,
    pub(super) commands: Nodes,
}

/// A number constant with every reading it has.
#[derive(Clone, Debug, Default)]
pub(super) struct Number {
    pub(super) text: Span,
    pub(super) int: Option<i64>,
    pub(super) uint: Option<u64>,
    pub(super) float: Option<f64>,
    /// The real and the imaginary part of a constant that is written with an `i`.
    pub(super) complex: Option<(f64, f64)>,
}

impl Arena {
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn add(&mut self, position: usize, kind: NodeKind) -> NodeId {
        let number = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(Node {
            position: u32::try_from(position).unwrap_or(u32::MAX),
            kind,
        });
        number
    }

    pub(super) fn add_nodes(&mut self, nodes: &[NodeId]) -> Nodes {
        Nodes(Span::added(&mut self.lists, nodes))
    }

    pub(super) fn add_names(&mut self, names: &[Name]) -> Names {
        Names(Span::added(&mut self.paths, names))
    }

    pub(super) fn add_content(&mut self, content: &[u8]) -> Content {
        Content(Span::added(&mut self.strings, content))
    }

    /// The name that a new text gets.
    pub(super) fn next_name(&self) -> Name {
        Name(u32::try_from(self.names.len()).unwrap_or(u32::MAX))
    }

    pub(super) fn add_name(&mut self, text: String) {
        self.names.push(text.into());
    }

    pub(super) fn kind(&self, node: NodeId) -> &NodeKind {
        &self.nodes[node.0 as usize].kind
    }

    pub(super) fn nodes(&self, nodes: Nodes) -> &[NodeId] {
        nodes.0.of(&self.lists)
    }

    /// About the bytes that it takes.
    fn memory(&self) -> usize {
        size_of_val(&*self.nodes) + size_of_val(&*self.lists) + size_of_val(&*self.paths) + self.strings.len()
    }

    /// Whether a node is nothing but space in the text.
    pub(super) fn is_space(&self, text: &[u8], node: NodeId) -> bool {
        match self.kind(node) {
            NodeKind::List(list) => self.nodes(*list).iter().all(|node| self.is_space(text, *node)),
            NodeKind::Text(span) => text::trim_space(span.of(text)).is_empty(),
            _ => false,
        }
    }
}

impl Source {
    pub(super) fn kind(&self, node: NodeId) -> &NodeKind {
        self.arena.kind(node)
    }

    pub(super) fn nodes(&self, nodes: Nodes) -> &[NodeId] {
        self.arena.nodes(nodes)
    }

    pub(super) fn names(&self, names: Names) -> &[Name] {
        names.0.of(&self.arena.paths)
    }

    pub(super) fn content(&self, content: Content) -> &[u8] {
        content.0.of(&self.arena.strings)
    }

    pub(super) fn text_of(&self, span: Span) -> &[u8] {
        span.of(&self.text)
    }

    pub(super) fn name_of(&self, name: Name) -> &str {
        &self.arena.names[name.0 as usize]
    }

    /// Where a node begins: its byte in the text.
    pub(super) fn offset(&self, node: NodeId) -> usize {
        self.arena.nodes[node.0 as usize].position as usize
    }

    /// The functions that are called, in the order in which they were read, and where.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&'static str, NodeId)> {
        let nodes = self.arena.nodes.iter().zip(0..);
        nodes.filter_map(|(node, number)| match &node.kind {
            NodeKind::Identifier(function) => Some((function.name, NodeId(number))),
            _ => None,
        })
    }

    /// The node written out again, as error texts quote it.
    pub(super) fn describe(&self, node: NodeId) -> String {
        let mut written = String::new();
        self.write(node, &mut written);
        written
    }

    /// A field, a variable or a chain written out again, but only as far as the path goes.
    pub(super) fn describe_path(&self, node: NodeId, path: &[Name]) -> String {
        let mut written = String::new();
        match self.kind(node) {
            NodeKind::Variable { name, .. } => written.push_str(self.name_of(*name)),
            NodeKind::Chain { node, .. } => self.write_operand(*node, &mut written),
            _ => {}
        }
        self.write_fields(path, &mut written);
        written
    }

    fn write(&self, node: NodeId, out: &mut String) {
        match self.kind(node) {
            NodeKind::List(nodes) => self.nodes(*nodes).iter().for_each(|node| self.write(*node, out)),
            NodeKind::Text(span) => out.push_str(&text::lossy(self.text_of(*span))),
            NodeKind::Action(pipe) => self.write_braced("", *pipe, out),
            NodeKind::If(branch) => self.write_branch("if ", branch, out),
            NodeKind::With(branch) => self.write_branch("with ", branch, out),
            NodeKind::Range(branch) => self.write_branch("range ", branch, out),
            NodeKind::Template(inclusion) => {
                out.push_str("{{template ");
                out.push_str(&text::lossy(&crate::format::quote(inclusion.name.as_bytes())));
                if let Some(pipe) = inclusion.pipe {
                    out.push(' ');
                    self.write(pipe, out);
                }
                out.push_str("}}");
            }
            NodeKind::Break => out.push_str("{{break}}"),
            NodeKind::Continue => out.push_str("{{continue}}"),
            NodeKind::Pipe(pipe) => self.write_pipe(pipe, out),
            NodeKind::Command(arguments) => {
                for (index, argument) in self.nodes(*arguments).iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    self.write_operand(*argument, out);
                }
            }
            NodeKind::Identifier(function) => out.push_str(function.name),
            NodeKind::Variable { name, fields } => {
                out.push_str(self.name_of(*name));
                self.write_fields(self.names(*fields), out);
            }
            NodeKind::Field(fields) => self.write_fields(self.names(*fields), out),
            NodeKind::Chain { node, fields } => {
                self.write_operand(*node, out);
                self.write_fields(self.names(*fields), out);
            }
            NodeKind::Dot => out.push('.'),
            NodeKind::Nil => out.push_str("nil"),
            NodeKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            NodeKind::Number(number) => out.push_str(&text::lossy(self.text_of(number.text))),
            NodeKind::String { quoted, .. } => out.push_str(&text::lossy(self.text_of(*quoted))),
        }
    }

    fn write_pipe(&self, pipe: &Pipe, out: &mut String) {
        for (index, variable) in self.names(pipe.declared).iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            out.push_str(self.name_of(*variable));
        }
        if !pipe.declared.is_empty() {
            out.push_str(if pipe.is_assignment { " = " } else { " := " });
        }
        for (index, command) in self.nodes(pipe.commands).iter().enumerate() {
            if index > 0 {
                out.push_str(" | ");
            }
            self.write(*command, out);
        }
    }

    /// A pipeline within a command keeps its parentheses.
    fn write_operand(&self, node: NodeId, out: &mut String) {
        if matches!(self.kind(node), NodeKind::Pipe(_)) {
            out.push('(');
            self.write(node, out);
            out.push(')');
        } else {
            self.write(node, out);
        }
    }

    fn write_fields(&self, fields: &[Name], out: &mut String) {
        for field in fields {
            out.push('.');
            out.push_str(self.name_of(*field));
        }
    }

    fn write_braced(&self, keyword: &str, pipe: NodeId, out: &mut String) {
        out.push_str("{{");
        out.push_str(keyword);
        self.write(pipe, out);
        out.push_str("}}");
    }

    fn write_branch(&self, keyword: &str, branch: &Branch, out: &mut String) {
        self.write_braced(keyword, branch.pipe, out);
        self.write(branch.list, out);
        if let Some(else_list) = branch.else_list {
            out.push_str("{{else}}");
            self.write(else_list, out);
        }
        out.push_str("{{end}}");
    }
}

impl Tree {
    /// About the bytes that the text and all trees of it take.
    pub(super) fn memory(&self) -> usize {
        self.source.text.len() + self.source.arena.memory()
    }

    /// Whether the template is nothing but space: such a one never replaces another of its name.
    pub(super) fn is_empty(&self) -> bool {
        self.source.arena.is_space(&self.source.text, self.root)
    }
}
