//! How a running template asks.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Answer, AnswerError, Answers, Draw, Key, Lookup, Question, digest};
use crate::value::Value;
use crate::yaml::Node;

/// Asks for one render, and counts what was asked before.
pub(crate) struct Asker {
    answers: Arc<dyn Answers>,
    template: String,
    asked: HashMap<(&'static str, [u8; 32]), u32>,
    /// The function that nothing answers, if that is why the render failed.
    pub(crate) refused: Option<&'static str>,
}

impl Asker {
    pub(crate) fn new(answers: Arc<dyn Answers>) -> Self {
        Self {
            answers,
            template: String::new(),
            asked: HashMap::new(),
            refused: None,
        }
    }

    /// What follows is asked by the file of that path.
    pub(crate) fn begin(&mut self, template: &str) {
        let within = template.split_once('/').map_or(template, |(_, within)| within);
        within.clone_into(&mut self.template);
        self.asked.clear();
    }

    fn answer(
        &mut self,
        function: &'static str,
        arguments: &[Value],
        lookup: Option<&Lookup>,
        make: &dyn Fn(&mut Draw) -> Result<Answer, String>,
    ) -> Result<Answer, String> {
        let arguments = digest::of_values(arguments)?;
        let asked = self.asked.entry((function, arguments)).or_default();
        let key = Key {
            template: self.template.clone(),
            function: function.to_owned(),
            arguments: hex::encode(arguments),
            occurrence: *asked,
        };
        *asked += 1;
        let question = Question {
            key: &key,
            lookup,
            make,
        };
        self.answers.answer(&question).map_err(|error| {
            if error == AnswerError::Refused {
                self.refused = Some(function);
            }
            error.to_string()
        })
    }
}

/// One call that may ask.
pub(crate) struct Ask<'a> {
    pub(crate) asker: &'a mut Asker,
    pub(crate) function: &'static str,
    pub(crate) arguments: &'a [Value],
}

impl Ask<'_> {
    /// The answer to this call; `make` makes it as Helm would.
    pub(crate) fn answer(&mut self, make: impl Fn(&mut Draw) -> Result<Answer, String>) -> Result<Answer, String> {
        self.asker.answer(self.function, self.arguments, None, &make)
    }

    /// The answer to a call of `lookup`; alone, it finds nothing.
    pub(crate) fn looked_up(&mut self, lookup: &Lookup) -> Result<Answer, String> {
        let nothing = |_: &mut Draw| Ok(Answer::Object(Node::empty_map()));
        self.asker.answer(self.function, self.arguments, Some(lookup), &nothing)
    }

    /// The answer where a text is wanted.
    pub(crate) fn text(&mut self, make: impl Fn(&mut Draw) -> Result<String, String>) -> Result<String, String> {
        match self.answer(|draw| make(draw).map(Answer::Text))? {
            Answer::Text(text) => Ok(text),
            other => Err(wrong_kind("a text", &other)),
        }
    }
}

/// A memo or a caller answered with something that the function cannot give.
pub(crate) fn wrong_kind(wanted: &str, given: &Answer) -> String {
    format!("the answer is not {wanted} but a {given:?}")
}
