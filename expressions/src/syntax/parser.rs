//! The grammar, as a walk from left to right that knows how tightly each operator binds. Recursion is counted before it happens.

use super::{
    DEEPEST, MOST_LISTS, ParseError, Position,
    tokens::{Token, Word},
    tree::{Kind, Literal, Macro, Node, Operator},
};
use crate::words::cut;

/// Names that the language keeps for itself. They may stand after a dot: `metadata.namespace`.
const RESERVED: [&str; 17] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const OPERATORS: [Operator; 12] = [
    Operator::Equal,
    Operator::NotEqual,
    Operator::Less,
    Operator::LessOrEqual,
    Operator::Greater,
    Operator::GreaterOrEqual,
    Operator::In,
    Operator::Add,
    Operator::Subtract,
    Operator::Multiply,
    Operator::Divide,
    Operator::Remainder,
];

pub(super) struct Parser<'t> {
    text: &'t str,
    tokens: &'t [Token],
    next: usize,
    /// How many expressions within expressions are being read.
    nested: usize,
    /// How many lists, maps and macros were read.
    lists: usize,
}

type Parsed<T = Node> = Result<T, ParseError>;

impl<'t> Parser<'t> {
    /// The tokens are those of the text and end with the end.
    pub(super) fn new(text: &'t str, tokens: &'t [Token]) -> Self {
        Self {
            text,
            tokens,
            next: 0,
            nested: 0,
            lists: 0,
        }
    }

    pub(super) fn whole(mut self) -> Parsed {
        let root = self.expression()?;
        match self.peek() {
            Word::End => Ok(root),
            _ => Err(self.unexpected("an operator or the end")),
        }
    }

    fn expression(&mut self) -> Parsed {
        let start = self.start();
        if self.nested == DEEPEST {
            return Err(self.too_deep(start));
        }
        self.nested += 1;
        let condition = self.alternatives()?;
        let node = if self.take("?") {
            let then = self.alternatives()?;
            self.expect(":", "\":\" and what holds otherwise")?;
            let otherwise = self.expression()?;
            let kind = Kind::Choice {
                condition: condition.into(),
                then: then.into(),
                otherwise: otherwise.into(),
            };
            self.node(start, kind)?
        } else {
            condition
        };
        self.nested -= 1;
        Ok(node)
    }

    fn alternatives(&mut self) -> Parsed {
        self.row("||", Kind::Or, |parser| {
            parser.row("&&", Kind::And, |parser| parser.relation(1))
        })
    }

    /// One operand, or several with this symbol between them.
    fn row(&mut self, symbol: &str, kind: fn(Vec<Node>) -> Kind, operand: impl Fn(&mut Self) -> Parsed) -> Parsed {
        let start = self.start();
        let first = operand(self)?;
        if !self.is(symbol) {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.take(symbol) {
            operands.push(operand(self)?);
        }
        self.node(start, kind(operands))
    }

    /// Operands with operators between them that bind at least so tightly; those of one strength belong together from the left.
    fn relation(&mut self, weakest: u8) -> Parsed {
        let start = self.start();
        let mut left = self.unary()?;
        while let Some(operator) = self.operator().filter(|operator| operator.strength() >= weakest) {
            self.next += 1;
            let right = self.relation(operator.strength() + 1)?;
            let kind = Kind::Binary {
                operator,
                left: left.into(),
                right: right.into(),
            };
            left = self.node(start, kind)?;
        }
        Ok(left)
    }

    fn operator(&self) -> Option<Operator> {
        let Word::Symbol(found) = self.peek() else { return None };
        OPERATORS.into_iter().find(|operator| operator.symbol() == *found)
    }

    /// An operand with `!` or `-` before it, each of them once or several times.
    fn unary(&mut self) -> Parsed {
        let start = self.start();
        for (symbol, kind) in [("!", Kind::Not as fn(Box<Node>) -> Kind), ("-", Kind::Negate)] {
            let mut times = 0;
            while self.is(symbol) && !self.is_negative_number() {
                self.next += 1;
                times += 1;
            }
            if times > 0 {
                let operand = self.member()?;
                return match times % 2 {
                    0 => Ok(operand),
                    _ => self.node(start, kind(operand.into())),
                };
            }
        }
        self.member()
    }

    fn is_negative_number(&self) -> bool {
        let following = self.tokens.get(self.next + 1).map(|token| &token.word);
        self.is("-") && matches!(following, Some(Word::Whole(_) | Word::Literal(Literal::Double(_))))
    }

    /// An operand and what is selected from it.
    fn member(&mut self) -> Parsed {
        let start = self.start();
        let mut node = self.primary()?;
        loop {
            if self.take(".") {
                if self.is("?") {
                    return Err(self.unexpected("the name of a field (optional fields are not part of the language)"));
                }
                let field = self.name("the name of a field or function")?;
                node = if self.take("(") {
                    self.method(start, node, field)?
                } else {
                    let operand = node.into();
                    self.node(start, Kind::Select { operand, field })?
                };
            } else if self.take("[") {
                let index = self.expression()?.into();
                self.expect("]", "\"]\"")?;
                let operand = node.into();
                node = self.node(start, Kind::Index { operand, index })?;
            } else {
                return Ok(node);
            }
        }
    }

    fn primary(&mut self) -> Parsed {
        let start = self.start();
        let word = self.peek().clone();
        match word {
            Word::Literal(literal) => {
                self.next += 1;
                self.node(start, Kind::Literal(literal))
            }
            Word::Whole(_) | Word::Symbol("-") => self.signed(start),
            Word::Name(name) => self.named(start, name),
            Word::Symbol("(") => {
                self.next += 1;
                let inner = self.expression()?;
                self.expect(")", "\")\" or an operator")?;
                // With its brackets, so that what is shown of it can be read alone.
                let end = self.end();
                Ok(Node { start, end, ..inner })
            }
            Word::Symbol("[") => {
                self.next += 1;
                let elements = self.listed("]", Self::expression)?;
                self.node(start, Kind::List(elements))
            }
            Word::Symbol("{") => {
                self.next += 1;
                let entries = self.listed("}", |parser| {
                    let key = parser.expression()?;
                    parser.expect(":", "\":\" and a value")?;
                    Ok((key, parser.expression()?))
                })?;
                self.node(start, Kind::Map(entries))
            }
            Word::Symbol(_) | Word::End => Err(self.unexpected("a value, a name or an opening bracket")),
        }
    }

    fn signed(&mut self, start: usize) -> Parsed {
        let negative = self.take("-");
        let literal = match self.peek() {
            Word::Whole(value) => {
                let value = i128::from(*value);
                let value = if negative { -value } else { value };
                let too_large = ParseError::Token {
                    position: Position::of(self.text, start),
                    problem: format!("the number {value} is too large"),
                };
                Literal::Int(i64::try_from(value).map_err(|_| too_large)?)
            }
            Word::Literal(Literal::Double(value)) if negative => Literal::Double(-value),
            _ => return Err(self.unexpected("a value, a name or an opening bracket")),
        };
        self.next += 1;
        self.node(start, Kind::Literal(literal))
    }

    fn named(&mut self, start: usize, name: String) -> Parsed {
        if RESERVED.contains(&name.as_str()) {
            return Err(ParseError::Unexpected {
                position: Position::of(self.text, start),
                expected: "the name of a variable".to_owned(),
                found: format!("{name:?}, a word that the language reserves: give the object another key"),
            });
        }
        self.next += 1;
        if self.is("{") {
            return Err(self.unexpected("an operator (messages are not part of the language of conditions)"));
        }
        if !self.take("(") {
            return self.node(start, Kind::Name(name));
        }
        let arguments = self.listed(")", Self::expression)?;
        if name == "has" {
            return self.presence(start, arguments);
        }
        let kind = Kind::Call {
            function: name,
            target: None,
            arguments,
        };
        self.node(start, kind)
    }

    fn presence(&mut self, start: usize, mut arguments: Vec<Node>) -> Parsed {
        match arguments.pop().map(|argument| argument.kind) {
            Some(Kind::Select { operand, field }) if arguments.is_empty() => {
                self.node(start, Kind::Has { operand, field })
            }
            _ => Err(ParseError::Unexpected {
                position: Position::of(self.text, start),
                expected: "has() with the path of one field, like has(object.status.phase)".to_owned(),
                found: "something else".to_owned(),
            }),
        }
    }

    /// A call or a macro on an operand, whose opening bracket was read.
    fn method(&mut self, start: usize, target: Node, function: String) -> Parsed {
        let arguments = self.listed(")", Self::expression)?;
        let which = match (function.as_str(), arguments.len()) {
            ("all", 2) => Macro::All,
            ("exists", 2) => Macro::Exists,
            ("exists_one", 2) => Macro::ExistsOne,
            ("filter", 2) => Macro::Filter,
            ("map", 2 | 3) => Macro::Map,
            _ => {
                let target = Some(target.into());
                let kind = Kind::Call {
                    function,
                    target,
                    arguments,
                };
                return self.node(start, kind);
            }
        };
        let mut arguments = arguments.into_iter();
        let (variable, mut parts) = (arguments.next(), arguments.map(Box::new));
        let Some(Kind::Name(variable)) = variable.map(|variable| variable.kind) else {
            return Err(ParseError::Unexpected {
                position: Position::of(self.text, start),
                expected: format!("a name as the first argument of {function}()"),
                found: "something else".to_owned(),
            });
        };
        let (condition, transform) = match (which, parts.len()) {
            (Macro::Map, 1) => (None, parts.next()),
            _ => (parts.next(), parts.next()),
        };
        let range = target.into();
        let kind = Kind::Macro {
            which,
            range,
            variable,
            condition,
            transform,
        };
        self.node(start, kind)
    }

    /// What stands with commas between, up to the closing bracket. One comma more is allowed, but not among arguments.
    fn listed<T>(&mut self, close: &'static str, element: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        if self.take(close) {
            return Ok(elements);
        }
        // The grammar of the real one has the comma at the end independent of elements before it.
        if close != ")" && self.take(",") {
            self.expect(close, &format!("{close:?}"))?;
            return Ok(elements);
        }
        loop {
            elements.push(element(self)?);
            if self.take(close) {
                return Ok(elements);
            }
            self.expect(",", &format!("\",\" or {close:?}"))?;
            if close != ")" && self.take(close) {
                return Ok(elements);
            }
        }
    }

    fn name(&mut self, expected: &str) -> Parsed<String> {
        match self.peek() {
            Word::Name(name) => {
                let name = name.clone();
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn peek(&self) -> &Word {
        self.tokens.get(self.next).map_or(&Word::End, |token| &token.word)
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Word::Symbol(found) if *found == symbol)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        self.next += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &str, expected: &str) -> Parsed<()> {
        if self.take(symbol) {
            Ok(())
        } else {
            Err(self.unexpected(expected))
        }
    }

    /// Where the next word begins.
    fn start(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len(), |token| token.start)
    }

    /// Where the last word ended.
    fn end(&self) -> usize {
        let last = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.map_or(0, |token| token.end)
    }

    fn node(&mut self, start: usize, kind: Kind) -> Parsed {
        let below = kind.children().iter().map(|child| child.depth).max().unwrap_or(0);
        if below >= DEEPEST {
            return Err(self.too_deep(start));
        }
        self.lists += usize::from(matches!(kind, Kind::List(_) | Kind::Map(_) | Kind::Macro { .. }));
        if self.lists > MOST_LISTS {
            return Err(ParseError::TooManyLists {
                position: Position::of(self.text, start),
            });
        }
        Ok(Node {
            start,
            end: self.end(),
            depth: below + 1,
            kind,
        })
    }

    fn too_deep(&self, start: usize) -> ParseError {
        ParseError::TooDeep {
            position: Position::of(self.text, start),
        }
    }

    fn unexpected(&self, expected: &str) -> ParseError {
        let found = match self.tokens.get(self.next) {
            Some(token) if token.word != Word::End => format!("{:?}", cut(&self.text[token.start..token.end])),
            _ => "the end".to_owned(),
        };
        ParseError::Unexpected {
            position: Position::of(self.text, self.start()),
            expected: expected.to_owned(),
            found,
        }
    }
}
