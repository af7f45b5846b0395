//! The values of a release against the schemas of the charts that take part in it.

use super::dependencies::{Instance, table};
use crate::schema::{Problem, SchemaRules};
use crate::value::Map;

/// Values that do not satisfy the schemas of their charts. Displays as Helm's error.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("values don't meet the specifications of the schema(s) in the following chart(s):\n{text}")]
pub struct SchemaError {
    text: String,
    findings: Vec<SchemaFinding>,
}

/// A value that a schema refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SchemaFinding {
    /// The charts from the root's child to the one whose schema it is; none for the root itself.
    pub charts: Vec<String>,
    /// Where the value is in the values of that chart, as a JSON pointer.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

impl SchemaError {
    /// The values that are refused; none when a schema itself is wrong.
    pub fn findings(&self) -> &[SchemaFinding] {
        &self.findings
    }
}

impl SchemaFinding {
    /// Where the value is in the values of the whole release: `.Values.database.port`. Elements of lists go by number.
    pub fn value_path(&self) -> String {
        let mut path = ".Values".to_owned();
        let tokens = self.pointer.split('/').skip(1);
        let names = tokens.map(|token| token.replace("~1", "/").replace("~0", "~"));
        for name in self.charts.iter().cloned().chain(names) {
            path.push('.');
            path.push_str(&name);
        }
        path
    }
}

/// Checks the coalesced values of a chart and all below it.
pub(crate) fn check_schemas(chart: &Instance, values: &Map, rules: SchemaRules) -> Result<(), SchemaError> {
    let mut error = SchemaError::default();
    error.check(chart, values, rules, &mut Vec::new());
    if error.text.is_empty() { Ok(()) } else { Err(error) }
}

impl SchemaError {
    fn check(&mut self, chart: &Instance, values: &Map, rules: SchemaRules, charts: &mut Vec<String>) {
        if let Some(Problem { text, findings }) = chart.schema().and_then(|schema| schema.problem(values, rules)) {
            self.text.push_str(&chart.metadata.name);
            self.text.push_str(":\n");
            self.text.push_str(&text);
            self.findings
                .extend(findings.into_iter().map(|(pointer, message)| SchemaFinding {
                    charts: charts.clone(),
                    pointer,
                    message,
                }));
        }
        for child in &chart.dependencies {
            let section = table(values, &child.metadata.name).unwrap_or_default();
            charts.push(child.metadata.name.clone());
            self.check(child, &section, rules, charts);
            charts.pop();
        }
    }
}
