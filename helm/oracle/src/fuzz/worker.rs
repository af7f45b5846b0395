//! One thread of a search.

use std::collections::HashSet;

use helm::Profile;
use proptest::prelude::{BoxedStrategy, Strategy as _};
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::duel::{Answer, Ours};
use super::{Difference, Oracle, Shared, grammar};

/// Templates that one run of the real Helm renders.
const BATCH: usize = 400;

/// Templates of a batch that are tried with the real Helm, each in a run of its own, because we refuse them in words that are new.
const REFUSED_ANEW: usize = 60;

/// The same of those that we refuse in words as before.
const REFUSED_AGAIN: usize = 16;

/// How often the real Helm is asked before its answer is taken for the only one: it goes through maps in random order.
const ASKED: usize = 8;

/// Attempts to make one difference smaller.
const SHRINKING: usize = 300;

type Tree = Box<dyn ValueTree<Value = String>>;

pub(super) struct Worker<'a> {
    shared: &'a Shared<'a>,
    templates: BoxedStrategy<String>,
    runner: TestRunner,
    /// The batches so far, from which the next binary follows.
    batches: usize,
    /// How we refused templates so far, by the Helm version.
    shapes: HashSet<(&'static str, String)>,
}

/// One generated template and what we make of it.
struct Case {
    tree: Tree,
    text: String,
    ours: Answer,
}

impl<'a> Worker<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, number: u64) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&shared.search.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&number.to_le_bytes());
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        Self {
            shared,
            templates: grammar::templates(),
            runner: TestRunner::new_with_rng(Config::default(), random),
            batches: usize::try_from(number).unwrap_or_default(),
            shapes: HashSet::new(),
        }
    }

    pub(super) fn run(mut self) -> anyhow::Result<()> {
        while !self.shared.is_over() {
            let oracles = &self.shared.search.oracles;
            let oracle = &oracles[self.batches % oracles.len()];
            self.batches += 1;
            self.batch(oracle)?;
        }
        Ok(())
    }

    fn batch(&mut self, oracle: &Oracle) -> anyhow::Result<()> {
        let mut rendered = Vec::new();
        let mut refused = Vec::new();
        for _ in 0..BATCH {
            let tree = self.templates.new_tree(&mut self.runner);
            let tree = tree.map_err(|reason| anyhow::anyhow!("no template can be generated: {reason}"))?;
            let text = tree.current();
            match Ours::render(&text, oracle.profile) {
                Ours::Beyond => self.shared.found(|found| found.untried += 1),
                Ours::Answer(ours @ Answer::Wrote(_)) => rendered.push(Case {
                    tree: Box::new(tree),
                    text,
                    ours,
                }),
                Ours::Answer(ours) => refused.push(Case {
                    tree: Box::new(tree),
                    text,
                    ours,
                }),
            }
        }
        self.compare(oracle, rendered)?;
        self.compare_refused(oracle, refused)
    }

    /// Templates that we refuse: as many of each kind as there is time for.
    fn compare_refused(&mut self, oracle: &Oracle, refused: Vec<Case>) -> anyhow::Result<()> {
        let (mut anew, mut again) = (0, 0);
        for case in refused {
            let shape = (oracle.profile.name, case.ours.shape());
            let (tried, most) = if self.shapes.contains(&shape) {
                (&mut again, REFUSED_AGAIN)
            } else {
                (&mut anew, REFUSED_ANEW)
            };
            if *tried == most || self.shared.is_over() {
                self.shared.found(|found| found.untried += 1);
                continue;
            }
            *tried += 1;
            self.shapes.insert(shape);
            let theirs = oracle.render(&case.text)?;
            if theirs == case.ours {
                self.shared.found(|found| found.refused_alike += 1);
            } else {
                self.tell(oracle, case)?;
            }
        }
        Ok(())
    }

    /// Templates that we render, with as few runs of the real Helm as it takes.
    fn compare(&mut self, oracle: &Oracle, mut cases: Vec<Case>) -> anyhow::Result<()> {
        while !cases.is_empty() {
            let texts: Vec<&str> = cases.iter().map(|case| case.text.as_str()).collect();
            match oracle.render_all(&texts)? {
                Ok(outputs) => {
                    for (case, theirs) in cases.drain(..).zip(outputs) {
                        if Answer::Wrote(theirs) == case.ours {
                            self.shared.found(|found| found.equal += 1);
                        } else {
                            self.tell(oracle, case)?;
                        }
                    }
                }
                Err(Some(refused)) if refused < cases.len() => {
                    let case = cases.swap_remove(refused);
                    self.tell(oracle, case)?;
                }
                Err(_) if cases.len() == 1 => return self.tell(oracle, cases.remove(0)),
                Err(_) => {
                    let half = cases.split_off(cases.len() / 2);
                    self.compare(oracle, half)?;
                }
            }
            if self.shared.is_over() {
                break;
            }
        }
        Ok(())
    }

    /// Makes a difference smaller and notes it, if the real Helm gives one answer each time.
    fn tell(&self, oracle: &Oracle, mut case: Case) -> anyhow::Result<()> {
        let Some(mut smallest) = Self::difference(oracle, &case.text)? else {
            return Ok(());
        };
        let mut changed = case.tree.simplify();
        for _ in 0..SHRINKING {
            if !changed || self.shared.is_late() {
                break;
            }
            let smaller = case.tree.current();
            changed = match Self::difference(oracle, &smaller)? {
                Some(difference) => {
                    smallest = difference;
                    case.tree.simplify()
                }
                None => case.tree.complicate(),
            };
        }
        self.shared.found(|found| found.add(smallest));
        Ok(())
    }

    fn difference(oracle: &Oracle, text: &str) -> anyhow::Result<Option<Difference>> {
        let profile: &'static Profile = oracle.profile;
        let Ours::Answer(ours) = Ours::render(text, profile) else {
            return Ok(None);
        };
        let theirs = oracle.render(text)?;
        if theirs == ours {
            return Ok(None);
        }
        for _ in 1..ASKED {
            if oracle.render(text)? != theirs {
                return Ok(None);
            }
        }
        Ok(Some(Difference {
            template: text.to_owned(),
            profile: profile.name,
            theirs: theirs.to_string(),
            ours: ours.to_string(),
        }))
    }
}
