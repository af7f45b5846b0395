//! The tree of an expression. Macros stay what they are: a check that knows `all` says more than one that sees a loop.

/// A part of an expression and where it is written, in bytes from `start` to before `end`.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Levels of the tree from here on, at least one.
    pub(crate) depth: usize,
    pub(crate) kind: Kind,
}

/// What a part says.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Literal),
    /// A variable, or the name of a type.
    Name(String),
    Select {
        operand: Box<Node>,
        field: String,
    },
    /// `has(operand.field)`.
    Has {
        operand: Box<Node>,
        field: String,
    },
    Index {
        operand: Box<Node>,
        index: Box<Node>,
    },
    Call {
        function: String,
        target: Option<Box<Node>>,
        arguments: Vec<Node>,
    },
    Macro {
        which: Macro,
        range: Box<Node>,
        variable: String,
        /// What each element is asked; without it, a `map` takes all.
        condition: Option<Box<Node>>,
        /// What a `map` makes of an element.
        transform: Option<Box<Node>>,
    },
    List(Vec<Node>),
    Map(Vec<(Node, Node)>),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// Two or more in a row.
    And(Vec<Node>),
    /// Two or more in a row.
    Or(Vec<Node>),
    Binary {
        operator: Operator,
        left: Box<Node>,
        right: Box<Node>,
    },
    Choice {
        condition: Box<Node>,
        then: Box<Node>,
        otherwise: Box<Node>,
    },
}

/// A value as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// What is asked of, or made of, all elements of a list or all keys of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
}

/// What stands between two operands, without `&&` and `||`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Operator {
    /// As it is written.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::In => "in",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// How tightly it binds; more binds tighter.
    pub(crate) fn strength(self) -> u8 {
        match self {
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::In => 1,
            Self::Add | Self::Subtract => 2,
            Self::Multiply | Self::Divide | Self::Remainder => 3,
        }
    }

    /// Whether it says something about two values, true or false.
    pub(crate) fn compares(self) -> bool {
        self.strength() == 1
    }
}

impl Kind {
    /// The parts below, in the order in which they are written.
    pub(crate) fn children(&self) -> Vec<&Node> {
        match self {
            Self::Literal(_) | Self::Name(_) => Vec::new(),
            Self::Select { operand, .. } | Self::Has { operand, .. } | Self::Not(operand) | Self::Negate(operand) => {
                vec![operand]
            }
            Self::Index { operand, index } => vec![operand, index],
            Self::Call { target, arguments, .. } => target.as_deref().into_iter().chain(arguments).collect(),
            Self::Macro {
                range,
                condition,
                transform,
                ..
            } => [Some(range), condition.as_ref(), transform.as_ref()]
                .into_iter()
                .flatten()
                .map(|node| &**node)
                .collect(),
            Self::List(nodes) | Self::And(nodes) | Self::Or(nodes) => nodes.iter().collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            Self::Binary { left, right, .. } => vec![left, right],
            Self::Choice {
                condition,
                then,
                otherwise,
            } => vec![condition, then, otherwise],
        }
    }
}
