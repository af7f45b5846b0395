//! Templates of values that take all they can get.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use rendering::{ErrorClass, ValuesError};

use crate::{chain, values_of};

#[test]
fn a_template_that_would_take_hours_ends_at_its_steps() {
    for bomb in [
        "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}",
        "{{ define \"a\" }}{{ template \"a\" }}{{ template \"a\" }}{{ end }}{{ template \"a\" }}",
        "{{ range until 1000 }}{{ $x := toJson (until 100000) }}{{ end }}",
        "{{ range until 100000 }}{{ $_ := regexReplaceAll \"(a*)*b\" (repeat 100000 \"a\") \"x\" }}{{ end }}",
    ] {
        let begin = Instant::now();
        let error = values_of("overwrite.yaml", bomb).unwrap_err();
        assert!(begin.elapsed() < Duration::from_mins(1), "{bomb}");
        assert_eq!(error.place().unwrap().0, "overwrite.yaml");
        let said = chain(&error);
        let ended = [
            "takes more than",
            "exceeded maximum template depth",
            "make more than",
            "did not end within",
        ];
        assert!(ended.iter().any(|end| said.contains(end)), "{bomb}: {said}");
    }
}

#[test]
fn a_template_that_grows_its_texts_ends_at_what_it_may_make() {
    let bomb = "{{ $x := \"0123456789\" }}{{ range until 40 }}{{ $x = print $x $x }}{{ end }}a: {{ $x }}";
    let error = values_of("overwrite.yaml", bomb).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Terminal);
    let said = chain(&error);
    assert!(
        said.contains("make more than") || said.contains("larger than"),
        "{said}"
    );
}

#[test]
fn values_of_more_than_a_mebibyte_are_refused() {
    let error = values_of("overwrite.yaml", "a: {{ repeat 1048576 \"x\" }}").unwrap_err();
    assert!(
        matches!(error, ValuesError::TooLong { bytes: 1_048_579, .. }),
        "{error}"
    );
    assert!(values_of("overwrite.yaml", "a: {{ repeat 1048573 \"x\" }}").is_ok());
}

#[test]
fn yaml_that_unfolds_without_end_is_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        writeln!(bomb, "a{level}: &a{level} [{before}]").unwrap();
    }
    for text in [bomb.clone(), format!("values: |\n  {}", bomb.replace('\n', "\n  "))] {
        let error = values_of("overwrite.yaml", &text).unwrap_err();
        assert!(
            matches!(error, ValuesError::Read { .. } | ValuesError::Take { .. }),
            "{error}"
        );
    }
}

#[test]
fn a_tera_template_without_end_is_stopped() {
    let endless = "{% for a in range(end=100000) %}{% for b in range(end=100000) %}{% if a == -1 %}x{% endif %}{% endfor %}{% endfor %}";
    let error = values_of("overwrite.yaml.tera", endless).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Transient);
    assert!(chain(&error).contains("did not end within 4s"), "{}", chain(&error));
}
