//! The items of a text one after the other, some of them looked at before they are taken.

use super::{Parsed, Parser};
use crate::template::item::{Item, ItemKind};

impl<'a> Parser<'a> {
    pub(super) fn next(&mut self) -> Item<'a> {
        if self.peeked > 0 {
            self.peeked -= 1;
        } else {
            self.items[0] = self.lexer.next_item();
        }
        self.items[self.peeked]
    }

    pub(super) fn back_up(&mut self) {
        self.peeked += 1;
    }

    /// Returns two items; the one read last is still in its place.
    pub(super) fn back_up_two(&mut self, first: Item<'a>) {
        self.items[1] = first;
        self.peeked = 2;
    }

    pub(super) fn back_up_three(&mut self, first: Item<'a>, second: Item<'a>) {
        self.items[1] = second;
        self.items[2] = first;
        self.peeked = 3;
    }

    pub(super) fn peek(&mut self) -> &Item<'a> {
        if self.peeked == 0 {
            self.items[0] = self.lexer.next_item();
            self.peeked = 1;
        }
        &self.items[self.peeked - 1]
    }

    pub(super) fn next_word(&mut self) -> Item<'a> {
        loop {
            let item = self.next();
            if item.kind != ItemKind::Space {
                return item;
            }
        }
    }

    pub(super) fn peek_word(&mut self) -> Item<'a> {
        let item = self.next_word();
        self.back_up();
        item
    }

    pub(super) fn expect_right_delimiter(&mut self, context: &str) -> Parsed<Item<'a>> {
        let item = self.next_word();
        if item.kind == ItemKind::RightDelimiter {
            Ok(item)
        } else {
            Err(self.unexpected(&item, context))
        }
    }

    pub(super) fn unexpected(&self, item: &Item<'_>, context: &str) -> String {
        if item.kind != ItemKind::Error {
            return format!("unexpected {item} in {context}");
        }
        let problem = self.lexer.problem();
        let line = self.scope.action.map(|action| self.line_at(action));
        match line.filter(|line| *line != self.line_at(item.position)) {
            None => problem.to_owned(),
            Some(line) if problem.ends_with(" action") => format!("{problem} started at {}:{line}", self.file),
            Some(line) => format!("{problem} in action started at {}:{line}", self.file),
        }
    }
}
