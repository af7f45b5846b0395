//! The values of a release against the schemas of the charts that take part in it.

use indexmap::IndexSet;

use super::dependencies::table;
use super::instances::Instance;
use crate::schema::{Problem, SchemaRules};
use crate::value::Map;
use crate::warning::Said;

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
pub(crate) fn check_schemas(
    chart: Instance<'_>,
    values: &Map,
    rules: SchemaRules,
    warnings: &mut Vec<Said>,
) -> Result<(), SchemaError> {
    let mut check = Check {
        rules,
        unresolved: IndexSet::new(),
        charts: Vec::new(),
        error: SchemaError::default(),
    };
    check.chart(chart, values);
    let Check { unresolved, error, .. } = check;
    warnings.extend(unresolved.into_iter().map(|urn| Said::UnresolvedUrn { urn }));
    if error.text.is_empty() { Ok(()) } else { Err(error) }
}

struct Check {
    rules: SchemaRules,
    /// URNs that nothing can load. Helm warns of each once.
    unresolved: IndexSet<String>,
    /// The charts from the root's child to the one that is checked.
    charts: Vec<String>,
    error: SchemaError,
}

impl Check {
    fn chart(&mut self, chart: Instance<'_>, values: &Map) {
        let problem = chart
            .schema()
            .and_then(|schema| schema.problem(values, self.rules, &mut self.unresolved));
        if let Some(Problem { text, findings }) = problem {
            let Self { error, charts, .. } = self;
            error.text.push_str(chart.name());
            error.text.push_str(":\n");
            error.text.push_str(&text);
            error
                .findings
                .extend(findings.into_iter().map(|(pointer, message)| SchemaFinding {
                    charts: charts.clone(),
                    pointer,
                    message,
                }));
        }
        for child in chart.dependencies() {
            let section = table(values, child.name()).unwrap_or_default();
            self.charts.push(child.name().to_owned());
            self.chart(child, &section);
            self.charts.pop();
        }
    }
}
