//! Pipelines, commands and operands: what stands between the delimiters of an action.

use super::{MAX_PARENTHESES, Parsed, Parser, quoted};
use crate::bounds::beyond;
use crate::template::item::{Item, ItemKind, Keyword};
use crate::template::literal;
use crate::template::syntax::{Name, NodeId, NodeKind, Nodes, Number, Pipe};
use crate::text;

impl<'a> Parser<'a> {
    pub(super) fn pipeline(&mut self, context: &str, end: ItemKind) -> Parsed<NodeId> {
        let position = self.peek_word().position;
        let mut is_assignment = false;
        let declared = self.declarations(context, &mut is_assignment)?;
        let before = self.open.len();
        loop {
            let item = self.next_word();
            match item.kind {
                kind if kind == end => {
                    let commands = self.close(before);
                    self.check_pipeline(commands, context)?;
                    let pipe = Pipe {
                        is_assignment,
                        declared: self.arena.add_names(&declared),
                        commands,
                    };
                    return Ok(self.node(position, NodeKind::Pipe(pipe)));
                }
                ItemKind::Bool
                | ItemKind::CharConstant
                | ItemKind::Complex
                | ItemKind::Field
                | ItemKind::Identifier
                | ItemKind::Number
                | ItemKind::RawString
                | ItemKind::String
                | ItemKind::Variable
                | ItemKind::LeftParenthesis
                | ItemKind::Keyword(Keyword::Dot | Keyword::Nil) => {
                    self.back_up();
                    let command = self.command()?;
                    self.open.push(command);
                }
                _ => return Err(self.unexpected(&item, context)),
            }
        }
    }

    /// The variables on the left, if the pipeline declares or assigns any.
    fn declarations(&mut self, context: &str, is_assignment: &mut bool) -> Parsed<Vec<Name>> {
        let mut declared = Vec::new();
        loop {
            let variable = self.peek_word();
            if variable.kind != ItemKind::Variable {
                return Ok(declared);
            }
            self.next();
            let following = *self.peek();
            let next = self.peek_word();
            match next.kind {
                ItemKind::Assign | ItemKind::Declare => {
                    *is_assignment = next.kind == ItemKind::Assign;
                    self.next_word();
                    self.declare(&variable, &mut declared);
                    return Ok(declared);
                }
                ItemKind::Char if next.text == b"," => {
                    self.next_word();
                    self.declare(&variable, &mut declared);
                    if context != "range" || declared.len() >= 2 {
                        return Err(format!("too many declarations in {context}"));
                    }
                    let is_allowed = matches!(
                        self.peek_word().kind,
                        ItemKind::Variable | ItemKind::RightDelimiter | ItemKind::RightParenthesis
                    );
                    if !is_allowed {
                        return Err("range can only initialize variables".to_owned());
                    }
                }
                _ => {
                    if following.kind == ItemKind::Space {
                        self.back_up_three(variable, following);
                    } else {
                        self.back_up_two(variable);
                    }
                    return Ok(declared);
                }
            }
        }
    }

    fn declare(&mut self, variable: &Item<'a>, declared: &mut Vec<Name>) {
        let name = self.intern(variable.text);
        declared.push(name);
        self.scope.variables.push(name);
    }

    /// Only the first command of a pipeline may begin with something that cannot take an argument.
    fn check_pipeline(&self, commands: Nodes, context: &str) -> Parsed<()> {
        let commands = self.arena.nodes(commands);
        if commands.is_empty() {
            return Err(format!("missing value for {context}"));
        }
        for (index, command) in commands.iter().enumerate().skip(1) {
            let NodeKind::Command(arguments) = self.arena.kind(*command) else {
                continue;
            };
            if is_literal(self.arena.kind(self.arena.nodes(*arguments)[0])) {
                return Err(format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<NodeId> {
        let position = self.peek_word().position;
        let before = self.open.len();
        loop {
            self.peek_word();
            let argument = self.operand()?;
            self.open.extend(argument);
            let item = self.next();
            match item.kind {
                ItemKind::Space => {}
                ItemKind::RightDelimiter | ItemKind::RightParenthesis => {
                    self.back_up();
                    break;
                }
                ItemKind::Pipe => break,
                _ => return Err(self.unexpected(&item, "operand")),
            }
        }
        if self.open.len() == before {
            return Err("empty command".to_owned());
        }
        let arguments = self.close(before);
        Ok(self.node(position, NodeKind::Command(arguments)))
    }

    /// A term and the fields after it; nothing when the next item is not an operand. A term with fields stands where these begin.
    fn operand(&mut self) -> Parsed<Option<NodeId>> {
        let item = self.next_word();
        self.path.clear();
        match item.kind {
            ItemKind::Field => {
                let name = self.intern(&item.text[1..]);
                self.path.push(name);
                let position = self.fields().unwrap_or(item.position);
                let kind = NodeKind::Field(self.arena.add_names(&self.path));
                return Ok(Some(self.node(position, kind)));
            }
            ItemKind::Variable => {
                let name = self.variable(&item)?;
                let position = self.fields().unwrap_or(item.position);
                let fields = self.arena.add_names(&self.path);
                return Ok(Some(self.node(position, NodeKind::Variable { name, fields })));
            }
            _ => {}
        }
        let Some(term) = self.term(&item)? else { return Ok(None) };
        self.path.clear();
        let Some(position) = self.fields() else {
            return Ok(Some(term));
        };
        if is_literal(self.arena.kind(term)) {
            return Err(format!("unexpected . after term {}", quoted(&self.literal_text(term))));
        }
        let fields = self.arena.add_names(&self.path);
        Ok(Some(self.node(position, NodeKind::Chain { node: term, fields })))
    }

    /// Adds the fields that follow to the path; gives the place of the first.
    fn fields(&mut self) -> Option<usize> {
        let mut first = None;
        while self.peek().kind == ItemKind::Field {
            let item = self.next();
            first.get_or_insert(item.position);
            let name = self.intern(&item.text[1..]);
            self.path.push(name);
        }
        first
    }

    fn literal_text(&self, node: NodeId) -> String {
        match self.arena.kind(node) {
            NodeKind::Bool(value) => value.to_string(),
            NodeKind::Nil => "nil".to_owned(),
            NodeKind::Number(number) => text::lossy(number.text.of(self.text)),
            NodeKind::String { quoted, .. } => text::lossy(quoted.of(self.text)),
            _ => ".".to_owned(),
        }
    }

    /// What is neither a field nor a variable.
    fn term(&mut self, item: &Item<'a>) -> Parsed<Option<NodeId>> {
        let kind = match item.kind {
            ItemKind::Identifier => {
                let Some(function) = self.functions.find(item.text) else {
                    return Err(format!("function {} not defined", quoted(&text::lossy(item.text))));
                };
                NodeKind::Identifier(function)
            }
            ItemKind::Keyword(Keyword::Dot) => NodeKind::Dot,
            ItemKind::Keyword(Keyword::Nil) => NodeKind::Nil,
            ItemKind::Bool => NodeKind::Bool(item.text == b"true"),
            ItemKind::CharConstant => number_node(literal::character(item.text)?, item),
            ItemKind::Complex => number_node(literal::complex(item.text)?, item),
            ItemKind::Number => number_node(literal::number(item.text)?, item),
            ItemKind::LeftParenthesis => {
                return self.parenthesized().map(Some);
            }
            ItemKind::String | ItemKind::RawString => NodeKind::String {
                quoted: item.span(),
                value: self.arena.add_content(&literal::unquote(item.text)?),
            },
            _ => {
                self.back_up();
                return Ok(None);
            }
        };
        Ok(Some(self.node(item.position, kind)))
    }

    fn parenthesized(&mut self) -> Parsed<NodeId> {
        if self.parentheses == MAX_PARENTHESES {
            let problem = "max expression depth exceeded".to_owned();
            return Err(if self.functions.has_bounded_parentheses() {
                problem
            } else {
                beyond(problem)
            });
        }
        self.parentheses += 1;
        let pipe = self.pipeline("parenthesized pipeline", ItemKind::RightParenthesis);
        self.parentheses -= 1;
        pipe
    }

    fn variable(&mut self, item: &Item<'a>) -> Parsed<Name> {
        let name = self.intern(item.text);
        if self.scope.variables.contains(&name) {
            return Ok(name);
        }
        Err(format!("undefined variable {}", quoted(&text::lossy(item.text))))
    }
}

fn number_node(mut number: Number, item: &Item<'_>) -> NodeKind {
    number.text = item.span();
    NodeKind::Number(Box::new(number))
}

fn is_literal(kind: &NodeKind) -> bool {
    matches!(
        kind,
        NodeKind::Bool(_) | NodeKind::Dot | NodeKind::Nil | NodeKind::Number(_) | NodeKind::String { .. }
    )
}
