//! The values of a release against the schemas of the charts that take part in it.

use super::dependencies::{Instance, table};
use crate::value::Map;

/// Checks the coalesced values of a chart and all below it. The error is Helm's text.
pub(crate) fn check_schemas(chart: &Instance, values: &Map) -> Result<(), String> {
    let problems = problems(chart, values);
    if problems.is_empty() {
        return Ok(());
    }
    Err(format!(
        "values don't meet the specifications of the schema(s) in the following chart(s):\n{problems}"
    ))
}

fn problems(chart: &Instance, values: &Map) -> String {
    let mut text = String::new();
    if let Some(problem) = chart.schema().and_then(|schema| schema.problem(values)) {
        text = format!("{}:\n{problem}", chart.metadata.name);
    }
    for child in &chart.dependencies {
        let section = table(values, &child.metadata.name).unwrap_or_default();
        text.push_str(&problems(child, &section));
    }
    text
}
