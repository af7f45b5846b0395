//! One line in which several parties stand, who take turns. Knows no clock and waits for nobody; who may go is said by whoever asks.

use std::collections::VecDeque;

/// Parties in the order of their turns, each with what it waits with. A party with nothing is not in the line.
#[derive(Debug)]
pub struct Line<T> {
    parties: VecDeque<(String, VecDeque<T>)>,
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self {
            parties: VecDeque::new(),
        }
    }
}

impl<T> Line<T> {
    /// Waits behind everything else of its party, and a new party behind the others.
    pub fn join(&mut self, party: &str, item: T) {
        match self.parties.iter_mut().find(|(name, _)| name == party) {
            Some((_, items)) => items.push_back(item),
            None => self.parties.push_back((party.to_owned(), VecDeque::from([item]))),
        }
    }

    /// The first that may go, of the party whose turn it is before all others that have one. Its party has the last turn afterwards.
    pub fn take(&mut self, may_go: impl Fn(&T) -> bool) -> Option<T> {
        self.take_beside(|_, item| may_go(item))
    }

    /// The same, where it matters who else stands in the line.
    pub fn take_beside(&mut self, may_go: impl Fn(&Self, &T) -> bool) -> Option<T> {
        let line = &*self;
        let first = |(_, items): &(String, VecDeque<T>)| items.iter().position(|item| may_go(line, item));
        let (turn, place) = line
            .parties
            .iter()
            .enumerate()
            .find_map(|(turn, party)| Some((turn, first(party)?)))?;
        let (party, mut items) = self.parties.remove(turn)?;
        let item = items.remove(place)?;
        if !items.is_empty() {
            self.parties.push_back((party, items));
        }
        Some(item)
    }

    /// Takes out what waits no longer.
    pub fn leave(&mut self, party: &str, is_meant: impl Fn(&T) -> bool) {
        if let Some((_, items)) = self.parties.iter_mut().find(|(name, _)| name == party) {
            items.retain(|item| !is_meant(item));
        }
        self.parties.retain(|(_, items)| !items.is_empty());
    }

    /// How many rivals go before this one of a party. Whoever is no rival goes at other times, and keeps nobody.
    pub fn ahead(&self, party: &str, is_rival: impl Fn(&T) -> bool, is_this: impl Fn(&T) -> bool) -> usize {
        let Some(turn) = self.parties.iter().position(|(name, _)| name == party) else {
            return 0;
        };
        let rivals = |items: &VecDeque<T>| items.iter().filter(|item| is_rival(item)).count();
        let of_own = |items: &VecDeque<T>| {
            let before = items.iter().take_while(|item| !is_this(item));
            before.filter(|item| is_rival(item)).count()
        };
        let own = self.parties.get(turn).map_or(0, |(_, items)| of_own(items));
        let of_others = self.parties.iter().enumerate().filter(|(index, _)| *index != turn);
        // Each other party has as many turns as this one before it, and one more if its turn comes first.
        let others = of_others.map(|(index, (_, items))| rivals(items).min(own + usize::from(index < turn)));
        own + others.sum::<usize>()
    }

    /// Whether a party other than this one waits with something of this kind.
    pub fn others_wait(&self, party: &str, is_meant: impl Fn(&T) -> bool) -> bool {
        let mut others = self.parties.iter().filter(|(name, _)| name != party);
        others.any(|(_, items)| items.iter().any(&is_meant))
    }

    /// All that wait, by party.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.parties.iter().flat_map(|(_, items)| items)
    }

    /// What goes first of its party.
    pub fn first(&self, party: &str) -> Option<&T> {
        let (_, items) = self.parties.iter().find(|(name, _)| name == party)?;
        items.front()
    }

    /// What goes first of each party, in the order of their turns.
    pub fn firsts(&self) -> impl Iterator<Item = &T> {
        self.parties.iter().filter_map(|(_, items)| items.front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAITING: [(&str, &str); 5] = [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1")];

    fn line() -> Line<&'static str> {
        let mut line = Line::default();
        for (party, item) in WAITING {
            line.join(party, item);
        }
        line
    }

    #[test]
    fn parties_take_turns_however_long_one_of_them_is() {
        let mut line = line();
        let order: Vec<_> = std::iter::from_fn(|| line.take(|_| true)).collect();
        assert_eq!(order, ["a1", "b1", "c1", "a2", "a3"]);
        assert_eq!(line.firsts().count(), 0, "nobody stands there any more");
    }

    #[test]
    fn who_is_told_how_many_go_before_it_sees_as_many_go() {
        for (party, item) in WAITING {
            let mut line = line();
            let ahead = line.ahead(party, |_| true, |other| *other == item);
            let before = std::iter::from_fn(|| line.take(|_| true)).take_while(|next| *next != item);
            assert_eq!(before.count(), ahead, "{item}");
        }
        let rivals = line().ahead("a", |item| *item != "b1", |item| *item == "a2");
        assert_eq!(rivals, 2, "who goes at other times keeps nobody");
    }

    #[test]
    fn a_party_that_has_enough_goes_only_while_nobody_else_waits() {
        let mut line = line();
        let has_enough = |line: &Line<&str>, item: &&str| !item.starts_with('a') || !line.others_wait("a", |_| true);
        let order: Vec<_> = std::iter::from_fn(|| line.take_beside(has_enough)).collect();
        assert_eq!(order, ["b1", "c1", "a1", "a2", "a3"]);
        assert_eq!(line.all().count(), 0);
    }

    #[test]
    fn who_may_not_go_keeps_its_place_and_holds_up_nobody() {
        let mut line = line();
        assert_eq!(line.take(|item| *item != "a1"), Some("a2"));
        assert_eq!(line.first("a"), Some(&"a1"));
        line.leave("a", |item| *item == "a1");
        assert_eq!(line.firsts().copied().collect::<Vec<_>>(), ["b1", "c1", "a3"]);
    }
}
