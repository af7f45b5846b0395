//! Builds the matcher of a pattern. The order of the stages and their choices are the library's, because the answers depend on them.

use super::matcher::{Every, Matcher, Set, Tree};
use super::parse::Node;
use super::{GlobError, MAX_DEPTH, pay};
use crate::bounds::beyond;

/// How many matchers are looked at in about the time of a step.
const MATCHERS_PER_STEP: usize = 16;

/// The matcher of parts that follow each other.
pub(super) fn sequence(nodes: Vec<Node>, depth: usize) -> Result<Matcher, GlobError> {
    if nodes.is_empty() {
        return Ok(Matcher::Nothing);
    }
    let matchers: Result<Vec<Matcher>, GlobError> = nodes.into_iter().map(|node| of_node(node, depth + 1)).collect();
    assemble(glue(matchers?)?, depth)
}

fn of_node(node: Node, depth: usize) -> Result<Matcher, GlobError> {
    if depth > MAX_DEPTH {
        return Err(beyond(GlobError::Depth));
    }
    Ok(match node {
        Node::Text(text) => Matcher::text(&text),
        Node::Any => Matcher::Any,
        Node::Super => Matcher::Super,
        Node::Single => Matcher::One(Set::no_slash()),
        Node::List {
            characters,
            is_not: false,
        } if characters.len() == 1 => Matcher::text(&String::from_iter(characters)),
        Node::List { characters, is_not } => Matcher::One(Set::List { characters, is_not }),
        Node::Range { low, high, is_not } => Matcher::One(Set::Range { low, high, is_not }),
        Node::Sequence(nodes) => sequence(nodes, depth)?,
        Node::AnyOf(alternatives) => any_of(alternatives, depth)?,
    })
}

fn any_of(alternatives: Vec<Vec<Node>>, depth: usize) -> Result<Matcher, GlobError> {
    let shared = shared_ends(&alternatives);
    if shared != (0, 0) {
        return sequence(factored(alternatives, shared), depth);
    }
    let matchers: Result<Vec<Matcher>, GlobError> = alternatives
        .into_iter()
        .map(|nodes| sequence(nodes, depth + 1))
        .collect();
    Ok(Matcher::any_of(matchers?))
}

/// How many parts all alternatives begin and end with alike. The first of the shortest is compared with all others, from both sides at once;
/// the right side gives up where the left one meets it.
fn shared_ends(alternatives: &[Vec<Node>]) -> (usize, usize) {
    let shortest = alternatives.iter().enumerate().min_by_key(|(_, nodes)| nodes.len());
    let Some((position, shortest)) = shortest.filter(|_| alternatives.len() > 1) else {
        return (0, 0);
    };
    let length = shortest.len();
    let (mut left, mut right) = (0, 0);
    let (mut is_left_over, mut is_right_over) = (false, false);
    for from_left in 0..length {
        if left + right >= length {
            break;
        }
        let from_right = length - 1 - from_left;
        for (_, other) in alternatives.iter().enumerate().filter(|(other, _)| *other != position) {
            is_left_over |= shortest[from_left] != other[from_left];
            is_right_over |= !is_left_over && from_right <= from_left;
            is_right_over |= shortest[from_right] != other[from_right + other.len() - length];
            if is_left_over && is_right_over {
                return (left, right);
            }
        }
        left += usize::from(!is_left_over);
        right += usize::from(!is_right_over);
    }
    (left, right)
}

/// The shared beginning, the different middles, each once, and the shared end.
fn factored(alternatives: Vec<Vec<Node>>, (left, right): (usize, usize)) -> Vec<Node> {
    let mut ends = None;
    let mut middles: Vec<Vec<Node>> = Vec::new();
    for mut nodes in alternatives {
        let end = nodes.split_off(nodes.len() - right);
        let middle = nodes.split_off(left);
        ends.get_or_insert((nodes, end));
        if !middles.contains(&middle) {
            middles.push(middle);
        }
    }
    let (beginning, end) = ends.unwrap_or_default();
    let middle = match middles.len() {
        1 => middles.pop().filter(|nodes| !nodes.is_empty()).map(Node::Sequence),
        _ => Some(Node::AnyOf(middles)),
    };
    let whole = |nodes: Vec<Node>| (!nodes.is_empty()).then_some(Node::Sequence(nodes));
    [whole(beginning), middle, whole(end)].into_iter().flatten().collect()
}

/// Neighbours that become one matcher.
struct Run {
    start: usize,
    end: usize,
    /// The characters of all together where each has a number of them; else they are alike in what they do not match.
    length: Option<usize>,
}

/// Glues neighbours until there are none left that can be.
fn glue(mut matchers: Vec<Matcher>) -> Result<Vec<Matcher>, GlobError> {
    loop {
        pay(1 + (matchers.len() / MATCHERS_PER_STEP) as u64)?;
        let Some(run) = longest_run(&matchers) else {
            return Ok(matchers);
        };
        let members: Vec<Matcher> = matchers.drain(run.start..run.end).collect();
        let glued = match run.length {
            Some(length) => Matcher::row(length, members),
            None => every(&members),
        };
        matchers.insert(run.start, glued);
    }
}

/// The first run of the most matchers. A row that has more characters than the row before it is taken even if it has fewer matchers.
fn longest_run(matchers: &[Matcher]) -> Option<Run> {
    let mut longest: Option<Run> = None;
    for start in 0..matchers.len() {
        let rest = &matchers[start..];
        let excluded = rest[0].excluded();
        let is_alike = |matcher: &&Matcher| excluded.is_some() && matcher.excluded() == excluded;
        let alike = rest.iter().take_while(is_alike).count();
        let lengths = rest.iter().map_while(Matcher::length);
        let (fixed, characters) = lengths.fold((0, 0), |(count, sum), length| (count + 1, sum + length));
        let run = Run {
            start,
            end: start + alike.max(fixed),
            length: (fixed > alike).then_some(characters),
        };
        if run.end < start + 2 {
            continue;
        }
        let is_better = longest.as_ref().is_none_or(|longest| {
            let has_more = longest
                .length
                .is_some_and(|most| run.length.is_some_and(|length| length > most));
            has_more || run.end - run.start > longest.end - longest.start
        });
        if is_better {
            longest = Some(run);
        }
    }
    longest
}

/// One matcher for neighbours that are alike in what they do not match. A list of excluded characters becomes a text that may not occur.
fn every(members: &[Matcher]) -> Matcher {
    let singles = members
        .iter()
        .filter(|member| matches!(member, Matcher::One(_)))
        .count();
    match members.first() {
        Some(Matcher::Super) => Matcher::Super,
        Some(first) if singles > 0 => Matcher::Every(Every {
            least: singles,
            is_exact: singles == members.len(),
            without: first.excluded().into_iter().flatten().collect::<String>().into(),
        }),
        _ => Matcher::Any,
    }
}

/// A tree of matchers: what has the most characters is looked for first, and the rest to the left and to the right of it.
fn assemble(mut matchers: Vec<Matcher>, depth: usize) -> Result<Matcher, GlobError> {
    if depth > MAX_DEPTH {
        return Err(beyond(GlobError::Depth));
    }
    if matchers.len() == 1 {
        return Ok(matchers.remove(0));
    }
    let lengths = matchers.iter().enumerate();
    let fixed = lengths.filter_map(|(position, matcher)| Some((position, matcher.length()?)));
    let longest = fixed.max_by_key(|(_, length)| *length);
    let right = matchers.split_off(longest.map_or(0, |(position, _)| position) + 1);
    let value = matchers.remove(matchers.len() - 1);
    let side = |matchers: Vec<Matcher>| {
        let some = (!matchers.is_empty()).then_some(matchers);
        some.map(|matchers| assemble(matchers, depth + 1)).transpose()
    };
    Ok(joined(value, side(matchers)?, side(right)?))
}

/// A tree, or the simpler matcher that the library puts in its place. They differ: `ab**ba` matches `aba`.
fn joined(value: Matcher, left: Option<Matcher>, right: Option<Matcher>) -> Matcher {
    let Matcher::Text { text, length } = value else {
        return Matcher::Tree(Box::new(Tree::new(value, left, right)));
    };
    match (left, right) {
        (Some(Matcher::Super), Some(Matcher::Super)) => Matcher::Contains(text),
        (Some(Matcher::Super), None) => Matcher::Suffix(text),
        (None, Some(Matcher::Super)) => Matcher::Prefix(text),
        (None, Some(Matcher::Suffix(suffix))) => Matcher::PrefixSuffix(text, suffix),
        (Some(Matcher::Prefix(prefix)), None) => Matcher::PrefixSuffix(prefix, text),
        (Some(Matcher::Any), None) => Matcher::SuffixAny(text),
        (None, Some(Matcher::Any)) => Matcher::PrefixAny(text),
        (left, right) => Matcher::Tree(Box::new(Tree::new(Matcher::Text { text, length }, left, right))),
    }
}
