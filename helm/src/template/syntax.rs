//! The syntax tree of templates: one arena of nodes for each parsed text, shared by the templates defined in it.
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
    pub(super) nodes: Vec<Node>,
    pub(super) names: Vec<Box<str>>,
}

/// One template: the text of a file, or a definition within it.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) name: Arc<str>,
    pub(super) source: Arc<Source>,
    pub(super) root: NodeId,
}

#[derive(Debug)]
pub(super) struct Node {
    /// Byte offset in the text.
    pub(super) position: u32,
    pub(super) kind: NodeKind,
}

#[derive(Debug)]
pub(super) enum NodeKind {
    List(Box<[NodeId]>),
    Text(Range<usize>),
    Action(NodeId),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template { name: Arc<str>, pipe: Option<NodeId> },
    Break,
    Continue,
    Pipe(Pipe),
    Command(Box<[NodeId]>),
    Identifier(&'static Function),
    Variable { name: Name, fields: Box<[Name]> },
    Field(Box<[Name]>),
    Chain { node: NodeId, fields: Box<[Name]> },
    Dot,
    Nil,
    Bool(bool),
    Number(Box<Number>),
    String { quoted: Range<usize>, value: Box<[u8]> },
}

#[derive(Debug)]
pub(super) struct Branch {
    pub(super) pipe: NodeId,
    pub(super) list: NodeId,
    pub(super) else_list: Option<NodeId>,
}

#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) is_assignment: bool,
    pub(super) declared: Box<[Name]>,
    pub(super) commands: Box<[NodeId]>,
}

/// A number constant with every reading it has.
#[derive(Clone, Debug, Default)]
pub(super) struct Number {
    pub(super) text: Range<usize>,
    pub(super) int: Option<i64>,
    pub(super) uint: Option<u64>,
    pub(super) float: Option<f64>,
    /// The real and the imaginary part of a constant that is written with an `i`.
    pub(super) complex: Option<(f64, f64)>,
}

impl Source {
    pub(super) fn kind(&self, node: NodeId) -> &NodeKind {
        &self.nodes[node.0 as usize].kind
    }

    pub(super) fn name_of(&self, name: Name) -> &str {
        &self.names[name.0 as usize]
    }

    /// Where a node begins: its byte in the text.
    pub(super) fn offset(&self, node: NodeId) -> usize {
        self.nodes[node.0 as usize].position as usize
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
            NodeKind::List(nodes) => nodes.iter().for_each(|node| self.write(*node, out)),
            NodeKind::Text(range) => out.push_str(&text::lossy(&self.text[range.clone()])),
            NodeKind::Action(pipe) => self.write_braced("", *pipe, out),
            NodeKind::If(branch) => self.write_branch("if ", branch, out),
            NodeKind::With(branch) => self.write_branch("with ", branch, out),
            NodeKind::Range(branch) => self.write_branch("range ", branch, out),
            NodeKind::Template { name, pipe } => {
                out.push_str("{{template ");
                out.push_str(&text::lossy(&crate::format::quote(name.as_bytes())));
                if let Some(pipe) = pipe {
                    out.push(' ');
                    self.write(*pipe, out);
                }
                out.push_str("}}");
            }
            NodeKind::Break => out.push_str("{{break}}"),
            NodeKind::Continue => out.push_str("{{continue}}"),
            NodeKind::Pipe(pipe) => self.write_pipe(pipe, out),
            NodeKind::Command(arguments) => {
                for (index, argument) in arguments.iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    self.write_operand(*argument, out);
                }
            }
            NodeKind::Identifier(function) => out.push_str(function.name),
            NodeKind::Variable { name, fields } => {
                out.push_str(self.name_of(*name));
                self.write_fields(fields, out);
            }
            NodeKind::Field(fields) => self.write_fields(fields, out),
            NodeKind::Chain { node, fields } => {
                self.write_operand(*node, out);
                self.write_fields(fields, out);
            }
            NodeKind::Dot => out.push('.'),
            NodeKind::Nil => out.push_str("nil"),
            NodeKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            NodeKind::Number(number) => out.push_str(&text::lossy(&self.text[number.text.clone()])),
            NodeKind::String { quoted, .. } => out.push_str(&text::lossy(&self.text[quoted.clone()])),
        }
    }

    fn write_pipe(&self, pipe: &Pipe, out: &mut String) {
        for (index, variable) in pipe.declared.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            out.push_str(self.name_of(*variable));
        }
        if !pipe.declared.is_empty() {
            out.push_str(if pipe.is_assignment { " = " } else { " := " });
        }
        for (index, command) in pipe.commands.iter().enumerate() {
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
        const BOXES: usize = 64;
        self.source.text.len() + self.source.nodes.len() * (size_of::<Node>() + BOXES)
    }

    /// Whether the template is nothing but space: such a one never replaces another of its name.
    pub(super) fn is_empty(&self) -> bool {
        is_empty(&self.source.nodes, &self.source.text, self.root)
    }
}

pub(super) fn is_empty(nodes: &[Node], text: &[u8], node: NodeId) -> bool {
    match &nodes[node.0 as usize].kind {
        NodeKind::List(list) => list.iter().all(|node| is_empty(nodes, text, *node)),
        NodeKind::Text(range) => text::trim_space(&text[range.clone()]).is_empty(),
        _ => false,
    }
}
