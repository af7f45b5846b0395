//! Who answers what templates ask, and that it is the same each time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops here")]

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helm::answers::{Answer, AnswerError, Answers, Draw, Entry, Lookup, Memo, Moment, Question, Refusing, Seeded};
use helm::yaml::Node;
use helm::{Chart, RenderError, RenderOptions, chart::ArchiveLimits};

const NOW: Moment = Moment {
    seconds: 1_790_000_000,
    nanoseconds: 500,
};

fn seeded(seed: u8) -> Arc<dyn Answers> {
    Arc::new(Seeded::new([seed; 32], NOW))
}

fn render_files(files: &[(&str, &str)], answers: &Arc<dyn Answers>) -> Result<String, RenderError> {
    let chart = [("Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n")];
    let files = chart.iter().chain(files);
    let files = files.map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
    let chart = Chart::from_files(files.collect::<Vec<_>>(), &ArchiveLimits::default()).unwrap();
    let options = RenderOptions {
        answers: Arc::clone(answers),
        ..RenderOptions::new("r", "ns")
    };
    let rendering = chart.render(&Node::Null, &options)?;
    Ok(String::from_utf8(rendering.stdout()).unwrap())
}

fn render(template: &str, answers: &Arc<dyn Answers>) -> Result<String, RenderError> {
    render_files(&[("templates/t.yaml", template)], answers)
}

/// What an expression gives, as text.
fn value(expression: &str, answers: &Arc<dyn Answers>) -> String {
    let text = render(&format!("v: {{{{ {expression} | toString | b64enc }}}}"), answers).unwrap();
    let encoded = text.strip_prefix("---\n# Source: c/templates/t.yaml\nv: ").unwrap();
    String::from_utf8(STANDARD.decode(encoded.trim_end()).unwrap()).unwrap()
}

#[test]
fn nothing_is_random_unless_the_caller_says_so() {
    let refusing: Arc<dyn Answers> = Arc::new(Refusing);
    let error = render("v: {{ randAlphaNum 8 }}", &refusing).unwrap_err();
    assert_eq!(error.lacks(), Some("randAlphaNum"));
    assert_eq!(
        error.to_string(),
        "template: c/templates/t.yaml:1:6: executing \"c/templates/t.yaml\" at <randAlphaNum 8>: \
         error calling randAlphaNum: nothing answers this function in this render: set `RenderOptions::answers`"
    );
    assert!(render("v: {{ if false }}{{ uuidv4 }}{{ end }}", &refusing).is_ok());
}

#[test]
fn lookup_finds_nothing() {
    let refusing: Arc<dyn Answers> = Arc::new(Refusing);
    for name in ["", "coredns"] {
        let found = format!("lookup \"v1\" \"Pod\" \"kube-system\" {name:?} | len");
        assert_eq!(value(&found, &refusing), "0");
    }
}

/// Finds what it is asked for, and keeps what that was.
#[derive(Debug, Default)]
struct Finder(Mutex<Vec<Option<Lookup>>>);

impl Answers for Finder {
    fn answer(&self, question: &Question<'_>) -> Result<Answer, AnswerError> {
        self.0.lock().unwrap().push(question.lookup.cloned());
        match question.lookup {
            Some(Lookup { name, .. }) => Ok(Answer::Object(Node::from([("name", Node::Text(name.clone()))]))),
            None => question.make(&mut Draw::new([1; 32], NOW)),
        }
    }
}

#[test]
fn a_question_says_what_is_looked_up_and_nothing_of_other_arguments() {
    let finder = Arc::new(Finder::default());
    let answers: Arc<dyn Answers> = Arc::<Finder>::clone(&finder);
    let text = render(
        "v: {{ (lookup \"v1\" \"Secret\" \"kube-system\" \"ca\").name }}{{ $_ := htpasswd \"user\" \"password\" }}",
        &answers,
    );
    assert!(text.unwrap().ends_with("v: ca\n"));
    let lookup = Lookup {
        api_version: "v1".to_owned(),
        kind: "Secret".to_owned(),
        namespace: "kube-system".to_owned(),
        name: "ca".to_owned(),
    };
    assert_eq!(*finder.0.lock().unwrap(), [Some(lookup), None]);
}

#[test]
fn a_time_since_1970_is_a_moment() {
    let moment = Moment::from(std::time::Duration::new(3, 5));
    assert_eq!((moment.seconds, moment.nanoseconds), (3, 5));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let template = "v: [{{ randAlphaNum 30 }}, {{ randAlphaNum 30 }}, {{ randInt 0 1000000 }}, {{ uuidv4 }}]";
    let first = render(template, &seeded(1)).unwrap();
    assert_eq!(render(template, &seeded(1)).unwrap(), first);
    assert_ne!(render(template, &seeded(2)).unwrap(), first);
    let items: Vec<&str> = first.split(['[', ']', ',']).map(str::trim).collect();
    assert_ne!(items[1], items[2], "the same call twice is two questions");
}

#[test]
fn an_answer_does_not_change_when_other_files_or_calls_come_and_go() {
    let one = ("templates/one.yaml", "one: {{ randAlphaNum 30 }}");
    let two = ("templates/two.yaml", "two: {{ randAlphaNum 30 }}-{{ randAlpha 5 }}");
    let alone = render_files(&[two], &seeded(1)).unwrap();
    let both = render_files(&[one, two], &seeded(1)).unwrap();
    let line = alone.lines().find(|line| line.starts_with("two: ")).unwrap();
    assert!(both.contains(line), "{both} has not {line}");
}

#[test]
fn random_letters_are_of_their_alphabet() {
    let answers = seeded(3);
    for (function, is_wanted) in [
        (
            "randAlphaNum",
            (|byte: char| byte.is_ascii_alphanumeric()) as fn(char) -> bool,
        ),
        ("randAlpha", |byte| byte.is_ascii_alphabetic()),
        ("randNumeric", |byte| byte.is_ascii_digit()),
        ("randAscii", |byte| (' '..='~').contains(&byte)),
    ] {
        let text = value(&format!("{function} 500"), &answers);
        assert_eq!(text.len(), 500, "{function}");
        assert!(text.chars().all(is_wanted), "{function}: {text}");
        let different: std::collections::BTreeSet<char> = text.chars().collect();
        assert!(different.len() >= 10, "{function}: {text}");
    }
    assert_eq!(value("randBytes 10 | b64dec | len", &answers), "10");
    let uuid = value("uuidv4", &answers);
    let shape: String = uuid.chars().map(|digit| if digit == '-' { '-' } else { 'x' }).collect();
    assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
    assert_eq!(&uuid[14..15], "4");
    assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    let mut letters: Vec<char> = value("shuffle \"abcdefghij\"", &answers).chars().collect();
    letters.sort_unstable();
    assert_eq!(letters.into_iter().collect::<String>(), "abcdefghij");
    for _ in 0..10 {
        let number: i64 = value("randInt -3 4", &answers).parse().unwrap();
        assert!((-3..4).contains(&number));
    }
}

#[test]
fn a_memo_repeats_what_it_recorded_after_being_written_and_read() {
    let template = "v: {{ randAlphaNum 30 }} {{ randInt 0 1000 }} {{ lookup \"v1\" \"Pod\" \"\" \"\" | len }}";
    let memo = Arc::new(Memo::new([], seeded(1)));
    let answers: Arc<dyn Answers> = Arc::<Memo>::clone(&memo);
    let first = render(template, &answers).unwrap();
    assert!(memo.unasked().is_empty());
    let kept = serde_json::to_string(&memo.entries()).unwrap();

    let entries: Vec<Entry> = serde_json::from_str(&kept).unwrap();
    assert_eq!(entries.len(), 3);
    let memo = Arc::new(Memo::new(entries.clone(), Arc::new(Refusing)));
    let answers: Arc<dyn Answers> = Arc::<Memo>::clone(&memo);
    assert_eq!(render(template, &answers).unwrap(), first);
    assert!(memo.unasked().is_empty());
    assert_eq!(memo.entries(), entries);
}

#[test]
fn a_memo_tells_what_was_not_asked_for_and_asks_for_what_is_new() {
    let memo = Memo::new([], seeded(1));
    let answers: Arc<dyn Answers> = Arc::new(memo);
    render("v: {{ randAlpha 5 }}", &answers).unwrap();
    let other = Arc::new(Memo::new([], seeded(1)));
    let answers: Arc<dyn Answers> = Arc::<Memo>::clone(&other);
    render("v: {{ randAlpha 5 }}{{ randAlpha 6 }}", &answers).unwrap();

    let second = Arc::new(Memo::new(other.entries(), seeded(2)));
    let answers: Arc<dyn Answers> = Arc::<Memo>::clone(&second);
    render("v: {{ randAlpha 6 }}{{ randAlpha 7 }}", &answers).unwrap();
    let unasked = second.unasked();
    assert_eq!(unasked.len(), 1);
    assert_eq!(
        (&*unasked[0].template, &*unasked[0].function),
        ("templates/t.yaml", "randAlpha")
    );
    assert_eq!(second.entries().len(), 3);
}

#[test]
fn an_answer_of_another_kind_is_an_error() {
    let memo = Arc::new(Memo::new([], seeded(1)));
    let answers: Arc<dyn Answers> = Arc::<Memo>::clone(&memo);
    render("v: {{ randAlpha 5 }}", &answers).unwrap();
    let mut entries = memo.entries();
    entries[0].answer = Answer::Number(1);
    let answers: Arc<dyn Answers> = Arc::new(Memo::new(entries, Arc::new(Refusing)));
    let error = render("v: {{ randAlpha 5 }}", &answers).unwrap_err();
    assert!(
        error.to_string().ends_with("the answer is not a text but a Number"),
        "{error}"
    );
}

#[test]
fn answers_and_seeds_are_not_shown() {
    let memo = Memo::new([], seeded(77));
    assert_eq!(format!("{:?}", Answer::Text("secret".to_owned())), "Text");
    assert!(!format!("{memo:?}").contains("77"), "{memo:?}");
}
