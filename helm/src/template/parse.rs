//! The grammar of templates: builds the trees of one text, and says with Go's words what is wrong with it.
//!
//! Control structures are decided here, pipelines and their operands in `pipeline`, the order in which items are looked at in `items`. A function that the table does not
//! know is an error of the text, so nothing is executed that would go wrong later.

mod items;
mod pipeline;

use std::collections::HashMap;
use std::sync::Arc;

use super::item::{Item, ItemKind, Keyword};
use super::lex::Lexer;
use super::literal;
use super::syntax::{Arena, Branch, Inclusion, Name, NodeId, NodeKind, Nodes, Source, Tree};
use crate::bounds::{MAX_ITEMS, beyond};
use crate::functions::FunctionTable;
use crate::text;

/// How deeply parentheses may nest in one text: as in Go, since its version 1.25.
const MAX_PARENTHESES: usize = 10_000;

/// How deeply control structures may nest in one text, each `else if` in the one before it.
pub(crate) const MAX_CONTROLS: usize = 10_000;

/// How many templates one text may define.
const MAX_DEFINITIONS: usize = 10_000;

/// A text that is not a template. Displays as Go's parser reports it: `template: FILE:LINE: TEXT`.
#[derive(Debug, thiserror::Error)]
#[error("template: {file}:{line}: {message}")]
#[non_exhaustive]
pub struct ParseError {
    /// The name of the text.
    pub file: String,
    /// The line of the item at which the error was noticed, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl ParseError {
    /// The function that the text calls and that there is not, if that is what is wrong.
    pub fn unknown_function(&self) -> Option<&str> {
        self.message.strip_prefix("function \"")?.strip_suffix("\" not defined")
    }

    /// The error as Helm prints it for a file of a chart.
    pub fn helm_text(&self) -> String {
        // Helm keeps what follows the last colon of the whole text, wherever that colon comes from.
        let message = self.message.rsplit(": ").next().unwrap_or_default();
        format!("parse error at ({}:{}): {message}", self.file, self.line)
    }
}

/// Parses a text into its own template and those defined in it, in no particular order.
pub(super) fn parse(file: &str, text: &Arc<[u8]>, functions: &'static FunctionTable) -> Result<Vec<Tree>, ParseError> {
    let mut parser = Parser::new(file, text, functions);
    match parser.template() {
        Ok(()) => Ok(parser.into_trees(text)),
        Err(message) => Err(ParseError {
            file: file.to_owned(),
            line: parser.line_at(parser.items[0].position),
            message,
        }),
    }
}

type Parsed<T> = Result<T, String>;

/// What ended a list of nodes.
enum Terminator {
    End,
    /// The position of the item after `else`.
    Else(usize),
}

/// What an action turned out to be.
enum Action {
    Node(NodeId),
    Terminator(Terminator),
}

struct Parser<'a> {
    file: Arc<str>,
    text: &'a [u8],
    functions: &'static FunctionTable,
    lexer: Lexer<'a>,
    /// Three items of look-ahead; the first is the one read last.
    items: [Item<'a>; 3],
    peeked: usize,
    arena: Arena,
    /// Nodes whose parent is not there yet, the innermost parent's last.
    open: Vec<NodeId>,
    name_index: HashMap<&'a [u8], Name>,
    /// The parts of the path that is being read.
    path: Vec<Name>,
    definitions: Vec<Definition>,
    /// Where each name is among the definitions.
    defined: HashMap<Arc<str>, usize>,
    scope: Scope,
    parentheses: usize,
    controls: usize,
}

/// A template that the text defines.
struct Definition {
    name: Arc<str>,
    root: NodeId,
    is_empty: bool,
}

/// What belongs to one template and is set aside while a definition inside it is parsed.
#[derive(Default)]
struct Scope {
    variables: Vec<Name>,
    range_depth: usize,
    /// Where the current action began; nothing outside actions.
    action: Option<usize>,
}

impl<'a> Parser<'a> {
    fn new(file: &str, text: &'a [u8], functions: &'static FunctionTable) -> Self {
        let nothing = Item {
            kind: ItemKind::End,
            position: 0,
            text: b"",
        };
        let mut parser = Self {
            file: Arc::from(file),
            text,
            functions,
            lexer: Lexer::new(text),
            items: [nothing; 3],
            peeked: 0,
            arena: Arena::default(),
            open: Vec::new(),
            name_index: HashMap::new(),
            path: Vec::new(),
            definitions: Vec::new(),
            defined: HashMap::new(),
            scope: Scope::default(),
            parentheses: 0,
            controls: 0,
        };
        let dollar = parser.intern(b"$");
        parser.scope.variables.push(dollar);
        parser
    }

    fn into_trees(self, text: &Arc<[u8]>) -> Vec<Tree> {
        let source = Arc::new(Source {
            name: self.file,
            text: Arc::clone(text),
            arena: self.arena,
        });
        self.definitions
            .into_iter()
            .map(|definition| Tree {
                name: definition.name,
                source: source.clone(),
                root: definition.root,
            })
            .collect()
    }

    fn intern(&mut self, name: &'a [u8]) -> Name {
        // A text is shorter than 4 GiB (`template`), so it has fewer names.
        let next = self.arena.next_name();
        let number = *self.name_index.entry(name).or_insert(next);
        if number == next {
            self.arena.add_name(text::lossy(name));
        }
        number
    }

    /// The nodes that were opened since there were so many.
    fn close(&mut self, before: usize) -> Nodes {
        let nodes = self.arena.add_nodes(&self.open[before..]);
        self.open.truncate(before);
        nodes
    }

    /// The line of a place in the text, from 1.
    fn line_at(&self, position: usize) -> usize {
        1 + memchr::memchr_iter(b'\n', &self.text[..position]).count()
    }

    fn node(&mut self, position: usize, kind: NodeKind) -> NodeId {
        self.arena.add(position, kind)
    }

    /// Counts one more control structure around what `parse` reads.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.controls == MAX_CONTROLS {
            return Err(beyond(format!(
                "text nests more than {MAX_CONTROLS} control structures"
            )));
        }
        self.controls += 1;
        let parsed = parse(self);
        self.controls -= 1;
        parsed
    }

    /// The whole text: like a list, but definitions may stand between its nodes.
    fn template(&mut self) -> Parsed<()> {
        let position = self.peek().position;
        while self.peek().kind != ItemKind::End {
            if self.peek().kind == ItemKind::LeftDelimiter {
                let delimiter = self.next();
                if self.next_word().kind == ItemKind::Keyword(Keyword::Define) {
                    self.definition()?;
                    continue;
                }
                self.back_up_two(delimiter);
            }
            match self.text_or_action()? {
                Action::Node(node) => self.open.push(node),
                Action::Terminator(Terminator::End) => return Err("unexpected {{end}}".to_owned()),
                Action::Terminator(Terminator::Else(_)) => return Err("unexpected {{else}}".to_owned()),
            }
        }
        let list = self.close(0);
        let root = self.node(position, NodeKind::List(list));
        self.define(self.file.clone(), root)
    }

    fn definition(&mut self) -> Parsed<()> {
        let context = "define clause";
        let item = self.next_word();
        if !matches!(item.kind, ItemKind::String | ItemKind::RawString) {
            let outer = self.scope.action.take();
            let error = self.unexpected(&item, context);
            self.scope.action = outer;
            return Err(error);
        }
        let name = self.template_name(&item, context)?;
        self.expect_right_delimiter(context)?;
        self.body_of(name, context, None)
    }

    /// The body of a definition or block, in a scope of its own. `begun` is what was read last before it, if Go goes on from there: it reads
    /// the body of a block apart.
    fn body_of(&mut self, name: Arc<str>, context: &str, begun: Option<Item<'a>>) -> Parsed<()> {
        let dollar = self.intern(b"$");
        let outer = std::mem::replace(
            &mut self.scope,
            Scope {
                variables: vec![dollar],
                ..Scope::default()
            },
        );
        let (root, terminator) = self.nested(Self::list)?;
        if let Terminator::Else(_) = terminator {
            self.items[0] = begun.unwrap_or(self.items[0]);
            return Err(format!("unexpected {{{{else}}}} in {context}"));
        }
        self.define(name, root)?;
        self.scope = outer;
        Ok(())
    }

    fn define(&mut self, name: Arc<str>, root: NodeId) -> Parsed<()> {
        let definition = Definition {
            is_empty: self.arena.is_space(self.text, root),
            name: name.clone(),
            root,
        };
        let Some(&index) = self.defined.get(&name) else {
            if self.definitions.len() >= MAX_DEFINITIONS {
                return Err(beyond(format!("text defines more than {MAX_DEFINITIONS} templates")));
            }
            self.defined.insert(name, self.definitions.len());
            self.definitions.push(definition);
            return Ok(());
        };
        if self.definitions[index].is_empty {
            self.definitions[index] = definition;
        } else if !definition.is_empty {
            return Err(format!("template: multiple definition of template {}", quoted(&name)));
        }
        Ok(())
    }

    fn template_name(&mut self, item: &Item<'_>, context: &str) -> Parsed<Arc<str>> {
        match item.kind {
            ItemKind::String | ItemKind::RawString => Ok(text::lossy(&literal::unquote(item.text)?).into()),
            _ => Err(self.unexpected(item, context)),
        }
    }

    fn list(&mut self) -> Parsed<(NodeId, Terminator)> {
        let position = self.peek_word().position;
        let before = self.open.len();
        while self.peek_word().kind != ItemKind::End {
            match self.text_or_action()? {
                Action::Node(node) => self.open.push(node),
                Action::Terminator(terminator) => {
                    let list = self.close(before);
                    return Ok((self.node(position, NodeKind::List(list)), terminator));
                }
            }
        }
        Err("unexpected EOF".to_owned())
    }

    fn text_or_action(&mut self) -> Parsed<Action> {
        if self.arena.len() > MAX_ITEMS {
            return Err(beyond(format!("template has more than {MAX_ITEMS} parts")));
        }
        let item = self.next_word();
        match item.kind {
            ItemKind::Text => Ok(Action::Node(self.node(item.position, NodeKind::Text(item.span())))),
            ItemKind::LeftDelimiter => {
                self.scope.action = Some(item.position);
                let action = self.action()?;
                self.scope.action = None;
                Ok(action)
            }
            _ => Err(self.unexpected(&item, "input")),
        }
    }

    fn action(&mut self) -> Parsed<Action> {
        let item = self.next_word();
        let ItemKind::Keyword(keyword) = item.kind else {
            self.back_up();
            return self.print();
        };
        let node = match keyword {
            Keyword::Block => self.block()?,
            Keyword::Break => self.jump(item.position, NodeKind::Break, "{{break}}")?,
            Keyword::Continue => self.jump(item.position, NodeKind::Continue, "{{continue}}")?,
            Keyword::Else => return self.otherwise(),
            Keyword::End => {
                self.expect_right_delimiter("end")?;
                return Ok(Action::Terminator(Terminator::End));
            }
            Keyword::If => self.nested(Self::if_control)?,
            Keyword::Range => self.nested(Self::range_control)?,
            Keyword::Template => self.template_control()?,
            Keyword::With => self.nested(Self::with_control)?,
            Keyword::Dot | Keyword::Define | Keyword::Nil => {
                self.back_up();
                return self.print();
            }
        };
        Ok(Action::Node(node))
    }

    fn print(&mut self) -> Parsed<Action> {
        let position = self.peek().position;
        let pipe = self.pipeline("command", ItemKind::RightDelimiter)?;
        Ok(Action::Node(self.node(position, NodeKind::Action(pipe))))
    }

    fn jump(&mut self, position: usize, kind: NodeKind, written: &str) -> Parsed<NodeId> {
        let item = self.next_word();
        if item.kind != ItemKind::RightDelimiter {
            return Err(self.unexpected(&item, written));
        }
        if self.scope.range_depth == 0 {
            return Err(format!("{written} outside {{{{range}}}}"));
        }
        Ok(self.node(position, kind))
    }

    fn otherwise(&mut self) -> Parsed<Action> {
        let item = self.peek_word();
        if !matches!(item.kind, ItemKind::Keyword(Keyword::If | Keyword::With)) {
            self.expect_right_delimiter("else")?;
        }
        Ok(Action::Terminator(Terminator::Else(item.position)))
    }

    fn if_control(&mut self) -> Parsed<NodeId> {
        let (position, branch) = self.branch("if")?;
        Ok(self.node(position, NodeKind::If(branch)))
    }

    fn with_control(&mut self) -> Parsed<NodeId> {
        let (position, branch) = self.branch("with")?;
        Ok(self.node(position, NodeKind::With(branch)))
    }

    fn range_control(&mut self) -> Parsed<NodeId> {
        let (position, branch) = self.branch("range")?;
        Ok(self.node(position, NodeKind::Range(branch)))
    }

    fn branch(&mut self, context: &str) -> Parsed<(usize, Branch)> {
        let variables = self.scope.variables.len();
        let position = self.peek_word().position;
        let pipe = self.pipeline(context, ItemKind::RightDelimiter)?;
        let is_range = usize::from(context == "range");
        self.scope.range_depth += is_range;
        let (list, terminator) = self.list()?;
        self.scope.range_depth -= is_range;
        let else_list = match terminator {
            Terminator::End => None,
            Terminator::Else(position) => Some(self.else_list(context, position)?),
        };
        self.scope.variables.truncate(variables);
        Ok((position, Branch { pipe, list, else_list }))
    }

    /// What follows `else`. An `else if` is an `if` inside the else, which borrows the outer end.
    fn else_list(&mut self, context: &str, position: usize) -> Parsed<NodeId> {
        let chained = match (context, self.peek().kind) {
            ("if", ItemKind::Keyword(Keyword::If)) => Some(Self::if_control as fn(&mut Self) -> Parsed<NodeId>),
            ("with", ItemKind::Keyword(Keyword::With)) => Some(Self::with_control as fn(&mut Self) -> Parsed<NodeId>),
            _ => None,
        };
        if let Some(control) = chained {
            self.next();
            let node = self.nested(control)?;
            let list = self.arena.add_nodes(&[node]);
            return Ok(self.node(position, NodeKind::List(list)));
        }
        match self.list()? {
            (list, Terminator::End) => Ok(list),
            (_, Terminator::Else(_)) => Err("expected end; found {{else}}".to_owned()),
        }
    }

    fn block(&mut self) -> Parsed<NodeId> {
        let context = "block clause";
        let item = self.next_word();
        let name = self.template_name(&item, context)?;
        let pipe = self.pipeline(context, ItemKind::RightDelimiter)?;
        self.body_of(name.clone(), context, Some(self.items[0]))?;
        let inclusion = Inclusion { name, pipe: Some(pipe) };
        Ok(self.node(item.position, NodeKind::Template(inclusion.into())))
    }

    fn template_control(&mut self) -> Parsed<NodeId> {
        let context = "template clause";
        let item = self.next_word();
        let name = self.template_name(&item, context)?;
        let mut pipe = None;
        if self.next_word().kind != ItemKind::RightDelimiter {
            self.back_up();
            pipe = Some(self.pipeline(context, ItemKind::RightDelimiter)?);
        }
        Ok(self.node(item.position, NodeKind::Template(Inclusion { name, pipe }.into())))
    }
}

fn quoted(text: &str) -> String {
    text::lossy(&crate::format::quote(text.as_bytes()))
}
