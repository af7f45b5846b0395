//! One line in which several parties stand, who take turns.

use std::collections::VecDeque;

/// Parties in the order of their turns, each with what it waits with. A party with nothing is not in the line.
#[derive(Debug)]
pub(super) struct Line<T> {
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
    pub(super) fn join(&mut self, party: &str, item: T) {
        match self.parties.iter_mut().find(|(name, _)| name == party) {
            Some((_, items)) => items.push_back(item),
            None => self.parties.push_back((party.to_owned(), VecDeque::from([item]))),
        }
    }

    /// The first that may go, of the party whose turn it is before all others that have one. Its party has the last turn afterwards.
    pub(super) fn take(&mut self, may_go: impl Fn(&T) -> bool) -> Option<T> {
        let first = |(_, items): &(String, VecDeque<T>)| items.iter().position(&may_go);
        let (turn, place) = self
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
    pub(super) fn leave(&mut self, party: &str, is_meant: impl Fn(&T) -> bool) {
        if let Some((_, items)) = self.parties.iter_mut().find(|(name, _)| name == party) {
            items.retain(|item| !is_meant(item));
        }
        self.parties.retain(|(_, items)| !items.is_empty());
    }

    /// How many rivals go before this one of a party. Whoever is no rival goes at other times, and keeps nobody.
    pub(super) fn ahead(&self, party: &str, is_rival: impl Fn(&T) -> bool, is_this: impl Fn(&T) -> bool) -> usize {
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
}
