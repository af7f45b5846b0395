//! A table for people: columns as wide as their cells, numbers to the right.

/// Lays out rows under a heading.
pub(crate) fn table<const COLUMNS: usize>(heading: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0).max(heading[column].len())
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let is_number = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
    let line = |cells: [&str; COLUMNS]| {
        let cells = cells.into_iter().zip(widths).map(|(cell, width)| {
            if is_number(cell) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rows = rows
        .iter()
        .map(|row| line(std::array::from_fn(|column| row[column].as_str())));
    format!("{}{}", line(heading), rows.collect::<String>())
}
