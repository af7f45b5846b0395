use super::*;

/// As much of a terminal as the screen makes use of.
struct Terminal {
    columns: usize,
    height: usize,
    /// Everything that was ever written, the visible part at its end.
    lines: Vec<String>,
    /// Counted from the first line of all.
    row: usize,
}

impl Terminal {
    fn new(columns: usize, height: usize) -> Self {
        Self {
            columns,
            height,
            lines: vec![String::new()],
            row: 0,
        }
    }

    fn size(&self) -> (usize, usize) {
        (self.columns, self.height)
    }

    fn write(&mut self, text: &str) {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            if let Some(sequence) = rest.strip_prefix("\x1b[") {
                let end = sequence
                    .find(|letter: char| letter.is_ascii_alphabetic())
                    .expect("an end");
                self.control(&sequence[..end], &sequence[end..=end]);
                rest = &sequence[end + 1..];
                continue;
            }
            match letter {
                '\n' => self.line_feed(),
                // Lines are always written whole, so that a new one begins with nothing.
                '\r' => self.lines[self.row].clear(),
                _ => {
                    self.lines[self.row].push(letter);
                    let width = Line(vec![(Ink::Plain, self.lines[self.row].clone())]).width();
                    assert!(width <= self.columns, "{:?} would be wrapped", self.lines[self.row]);
                }
            }
            rest = &rest[letter.len_utf8()..];
        }
    }

    fn line_feed(&mut self) {
        self.row += 1;
        if self.row == self.lines.len() {
            self.lines.push(String::new());
        } else {
            // Overwritten from its beginning; what remains of it is cleared by the sequence at its end.
            self.lines[self.row].clear();
        }
    }

    fn control(&mut self, argument: &str, command: &str) {
        let top = self.lines.len().saturating_sub(self.height);
        match command {
            "A" => {
                let rows: usize = argument.parse().expect("a number");
                self.row = self
                    .row
                    .checked_sub(rows)
                    .filter(|row| *row >= top)
                    .expect("a row that is visible");
            }
            "J" => self.lines.truncate(self.row + 1),
            "K" | "h" | "l" | "m" => {}
            other => panic!("unknown sequence {argument}{other}"),
        }
    }

    fn text(&self) -> String {
        self.lines.join("\n").trim_end().to_owned()
    }
}

fn screen() -> Screen {
    Screen {
        started: Instant::now(),
        coloured: true,
        live: Some(Live::on(None)),
        rows: Vec::new(),
        changes: Changes::default(),
    }
}

fn rows(objects: usize) -> Vec<Row> {
    let row = |depth: usize, name: String| Row {
        depth,
        id: ("ConfigMap".to_owned(), name),
        tone: Tone::Busy,
        state: "waiting".to_owned(),
        note: "for what takes more than a line on terminals that are not very wide".to_owned(),
        is_image: false,
        percent: None,
    };
    let objects = (0..objects).map(|index| row(2, format!("object-{index}")));
    [row(0, "stack".to_owned()), row(1, "release".to_owned())]
        .into_iter()
        .chain(objects)
        .collect()
}

#[test]
fn each_frame_goes_over_the_last_one_and_the_story_stays_above() {
    for (columns, height) in [(80, 24), (120, 40), (40, 12), (20, 6)] {
        let mut terminal = Terminal::new(columns, height);
        let mut screen = screen();
        let mut story = Vec::new();
        // Trees that grow beyond the terminal's height and shrink to nothing.
        for (step, objects) in [1, 3, 50, 2, 7, 0].into_iter().enumerate() {
            screen.rows = rows(objects);
            screen.working(step.is_multiple_of(2).then_some("waiting for a test"));
            terminal.write(&screen.composed(&[], (columns, height)));
            let line = format!("line {step}");
            terminal.write(&screen.composed(std::slice::from_ref(&line), (columns, height)));
            story.push(line);
            let text = terminal.text();
            let told: Vec<_> = text.lines().take(story.len()).collect();
            assert_eq!(told, story, "{columns} × {height}:\n{text}");
            let trees = text.lines().filter(|line| line.contains("──")).count();
            assert_eq!(trees, 1, "{columns} × {height}:\n{text}");
        }
        screen.rows.clear();
        screen.working(None);
        terminal.write(&screen.composed(&[], terminal.size()));
        assert_eq!(terminal.text(), story.join("\n"), "{columns} × {height}");
        // Nothing is to be written to the terminal of the test.
        screen.live = None;
    }
}

#[test]
fn colour_is_left_out_where_it_is_not_wanted() {
    let mut screen = screen();
    screen.coloured = false;
    screen.rows = rows(2);
    let frame = screen.composed(&["told".to_owned()], (80, 24));
    assert!(
        frame.contains("told") && !frame.contains("\x1b[0m") && !frame.contains("\x1b[2m"),
        "{frame:?}"
    );
    screen.live = None;
}

#[test]
fn without_a_terminal_only_lines_are_written() {
    let mut screen = screen();
    screen.live = None;
    screen.rows = rows(2);
    assert_eq!(screen.composed(&["told".to_owned()], (80, 24)), "told\n");
}
