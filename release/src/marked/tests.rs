use expressions::Position;

use super::{Node, Place};

/// The place of a position in the value of `conditions`.
fn place(text: &str, line: usize, column: usize) -> String {
    let file = Node::read(text).expect(text);
    let Some((key, Node::Scalar(value))) = file.entry("conditions") else {
        panic!("{text}")
    };
    let place = Place::within(text, key, value, Position { line, column });
    place.expect(text).to_string()
}

#[test]
fn a_position_in_a_value_is_a_line_and_a_column_of_the_file_however_the_value_is_written() {
    for (text, line, column, expected) in [
        ("kind: x\nconditions: a.b == 1 && c.d\n", 1, 13, "2:25"),
        ("# ü\nconditions: a.b == 'é' && c\n", 1, 15, "2:27"),
        ("conditions: 'a.b == \"x\" && c'\n", 1, 15, "1:28"),
        ("conditions: 'a.b == ''x'' && c'\n", 1, 15, "1:30"),
        ("\"conditions\": \"a.b == \\\"x\\\" && c\"\n", 1, 15, "1:32"),
        ("{conditions: a.b == 1, kind: x}\n", 1, 3, "1:16"),
        ("conditions: a.b == 1 &&\n  c.d == 2\n", 1, 13, "2:3"),
        ("conditions: |\n  a.b == 1 &&\n  c.d == 2\n", 2, 1, "3:3"),
        ("conditions: >- # both\n  a.b == 1 &&\n  c.d == 2\n", 1, 13, "3:3"),
        ("conditions: &both # both\n  a.b == 1 &&\n  c.d == 2\n", 1, 13, "3:3"),
        ("text: &text a.b == 1\nconditions: *text\n", 1, 1, "1:13"),
        // The end, where something is missing.
        ("conditions: a.b ==\n", 1, 7, "1:19"),
        ("conditions: |\n  a.b ==\n", 2, 1, "2:9"),
    ] {
        assert_eq!(place(text, line, column), expected, "{text}");
    }
}

#[test]
fn a_value_that_is_not_written_as_it_is_read_has_the_line_of_its_key() {
    for (text, expected) in [
        ("kind: x\nconditions: \"a.b ==\\t1 && c.d\"\n", "2"),
        ("text: &text |\n  a.b == 1 && c.d\nconditions: *text\n", "3"),
    ] {
        assert_eq!(place(text, 1, 13), expected, "{text}");
    }
}

#[test]
fn words_are_what_is_written_also_where_they_look_like_something_else() {
    let text = "name: 1.10\nflag: True\nnone: ~\nnothing:\ntag: !tag [one]\n";
    let file = Node::read(text).unwrap();
    let scalar = |key: &str| match file.entry(key) {
        Some((_, Node::Scalar(scalar))) => (scalar.text.clone().into_owned(), scalar.is_null),
        other => panic!("{other:?}"),
    };
    assert_eq!(scalar("name"), ("1.10".to_owned(), false));
    assert_eq!(scalar("flag"), ("True".to_owned(), false));
    assert_eq!(scalar("none"), ("~".to_owned(), true));
    assert_eq!(scalar("nothing"), (String::new(), true));
    let (_, tagged) = file.entry("tag").unwrap();
    assert!(matches!(tagged.item(0), Some(Node::Scalar(_))), "{tagged:?}");
    assert!(matches!(Node::read("# nothing\n"), Ok(Node::Map(entries)) if entries.is_empty()));
    assert!(Node::read("a: [\n").is_err());
}

#[test]
fn what_is_named_again_and_again_is_read_only_so_often() {
    let text = format!(
        "long: &long {}\nlist: [{}]\n",
        "x".repeat(1_000),
        "*long, ".repeat(2_000)
    );
    let file = Node::read(&text).unwrap();
    let Some((_, Node::List(items))) = file.entry("list") else {
        panic!("{file:?}")
    };
    let read = items.iter().take_while(|item| matches!(item, Node::Scalar(_))).count();
    assert!((900..1_100).contains(&read), "{read}");
    assert!(items[read..].iter().all(|item| matches!(item, Node::Unread)));
}

/// A number counts as one part, however long it is; this one is written in another way than it is read, so that each use is a copy.
#[test]
fn what_is_copied_again_and_again_is_copied_only_so_often() {
    let number = format!("!!float \"1.{}\\x30\"", "0".repeat(10_000));
    let text = format!("long: &long {number}\nlist: [{}]\n", "*long, ".repeat(2_000));
    let file = Node::read(&text).unwrap();
    let Some((_, Node::List(items))) = file.entry("list") else {
        panic!("{file:?}")
    };
    let copied = items.iter().filter(|item| matches!(item, Node::Scalar(_))).count();
    assert!((50..200).contains(&copied), "{copied}");
    assert_eq!(items.len(), 2_000);
}
