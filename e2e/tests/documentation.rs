//! What the pages for people promise about this repository: tests that they name exist, and links lead somewhere.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("below the root")
        .to_owned()
}

/// The files below `folder` whose names end so; neither what is built nor what is hidden.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry of a folder").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" {
                    folders.push(path);
                }
            } else if name.ends_with(end) {
                found.push(path);
            }
        }
    }
    found
}

/// The names of all functions that are marked as tests.
fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for path in files(&root(), ".rs") {
        let text = fs::read_to_string(&path).expect("a file of sources");
        let mut is_marked = false;
        for line in text.lines().map(str::trim_start) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_marked = true;
            } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| is_marked) {
                let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                names.insert(rest[..end.unwrap_or(rest.len())].to_owned());
                is_marked = false;
            }
        }
    }
    names
}

#[test]
fn every_attack_names_tests_that_exist_or_says_that_there_is_none() {
    let page = fs::read_to_string(root().join("docs/security.md")).expect("the page is there");
    let (_, table) = page.split_once("\n## Known attacks\n").expect("a section of attacks");
    let tests = tests();
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| **"))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [attack, _, defence, proof] = cells[..] else {
            panic!("four cells: {row}");
        };
        if attack == "attack" {
            continue;
        }
        rows += 1;
        let named: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        let is_gap = proof.starts_with("none: ");
        if defence.is_empty() || is_gap == named.iter().any(|name| tests.contains(*name)) {
            wrong.push(row.to_owned());
        }
        wrong.extend(
            named
                .iter()
                .filter(|name| !is_gap && !tests.contains(**name))
                .map(|name| format!("{attack}: there is no test {name}")),
        );
    }
    assert!(rows > 40, "{rows} rows: the table is not where it was");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// As GitHub makes them of headings.
fn anchor(heading: &str) -> String {
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
    heading
        .to_lowercase()
        .chars()
        .filter(kept)
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if line.starts_with('#') && !is_code {
            anchors.insert(anchor(line.trim_start_matches('#').trim()));
        }
    }
    anchors
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_a_heading() {
    let mut wrong = Vec::new();
    for page in files(&root(), ".md") {
        let text = fs::read_to_string(&page).expect("the page can be read");
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once(')')?.0));
        for link in links.filter(|link| !link.contains("://") && !link.contains(' ')) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => page.clone(),
                path => page.with_file_name("").join(path),
            };
            let is_there = target.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&target).is_ok_and(|text| anchors(&text).contains(heading)));
            if !is_there {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
