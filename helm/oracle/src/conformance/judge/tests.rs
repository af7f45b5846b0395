//! Made-up answers: which verdict they get, and how often Helm is asked for it.

use super::*;

fn output(text: &str) -> Answer {
    Answer::Output(text.as_bytes().to_vec())
}

fn error(line: &str) -> Answer {
    Answer::Error(line.to_owned())
}

/// The verdict where Helm gives these answers in turn, the last one for ever; and how often it was asked.
fn judged(ours: Answer, theirs: &[Answer]) -> (Judgement, usize) {
    let mut asked = 0;
    let ask = || {
        asked += 1;
        Ok(theirs[(asked - 1).min(theirs.len() - 1)].clone())
    };
    let judgement = judge(ours, ask).unwrap();
    (judgement, asked)
}

fn reason(judgement: Judgement) -> String {
    match judgement {
        Judgement::Different(unequal) => unequal.reason,
        other => panic!("{other:?}"),
    }
}

/// A text of which `drawn` bytes of 1,000 are drawn.
fn drawn(letter: &str, drawn: usize) -> Answer {
    output(&format!("{}:{}", "=".repeat(999 - drawn), letter.repeat(drawn)))
}

#[test]
fn equal_answers_take_one_question() {
    for answer in [output("kind: A\n"), error("Error: no")] {
        let (judgement, asked) = judged(answer.clone(), &[answer]);
        assert!(matches!(judgement, Judgement::Equal { .. }), "{judgement:?}");
        assert_eq!(asked, 1);
    }
}

#[test]
fn what_is_always_the_same_and_not_ours_is_different() {
    let (judgement, asked) = judged(output("kind: A\nname: b\n"), &[output("kind: A\nname: c\n")]);
    let Judgement::Different(unequal) = judgement else {
        panic!("{judgement:?}");
    };
    assert_eq!((unequal.line, asked), (Some(2), 4));
    let (judgement, _) = judged(error("Error: b"), &[error("Error: c")]);
    assert_eq!(reason(judgement), "Helm says something else");
    let (judgement, _) = judged(error("Error: b"), &[output("kind: A\n")]);
    assert_eq!(reason(judgement), "Helm renders it");
    let (judgement, _) = judged(output("kind: A\n"), &[error("Error: b")]);
    assert_eq!(reason(judgement), "Helm refuses it");
}

#[test]
fn a_crash_is_different_even_from_the_same_crash() {
    let crash = Answer::Broken("signal 6".to_owned());
    assert_eq!(
        reason(judged(crash.clone(), std::slice::from_ref(&crash)).0),
        "ours is broken: signal 6"
    );
    assert_eq!(
        reason(judged(output("kind: A\n"), &[crash]).0),
        "Helm is broken: signal 6"
    );
}

#[test]
fn rare_letters_and_clocks_get_more_answers_before_they_are_different() {
    let theirs = ["at: 10\n", "at: 10\n", "at: 10\n", "at: 11\n"].map(output);
    let (judgement, asked) = judged(output("at: 12\n"), &theirs);
    assert!(matches!(judgement, Judgement::Alike { .. }), "{judgement:?}");
    assert_eq!(asked, 4);
    let theirs = ["a: x4\n", "a: xy\n", "a: z5\n", "a: y1\n", "a: Q7\n"].map(output);
    let (judgement, asked) = judged(output("a: R8\n"), &theirs);
    assert!(matches!(judgement, Judgement::Alike { .. }), "{judgement:?}");
    assert_eq!(asked, 5);
}

#[test]
fn more_than_a_twentieth_masked_is_different_unless_it_is_listed() {
    let exceptions = Exceptions(vec![("listed.tgz", "*"), ("half.tgz", "flags")]);
    let verdict = |bytes, chart, variant| {
        let theirs = ["u", "v", "w"].map(|letter| drawn(letter, bytes));
        judged(drawn("x", bytes), &theirs)
            .0
            .limited(&exceptions, chart, variant)
    };
    assert!(verdict(50, "a.tgz", "default").is_equal());
    assert_eq!(reason(verdict(51, "a.tgz", "default")), "5.1 % is masked");
    assert!(verdict(51, "listed.tgz", "default").is_equal());
    assert!(verdict(51, "half.tgz", "flags").is_equal());
    assert!(!verdict(51, "half.tgz", "default").is_equal());
}

#[test]
fn every_exception_of_the_list_has_a_reason() {
    assert!(!Exceptions::listed().unwrap().0.is_empty());
}
