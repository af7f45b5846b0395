//! Reads what a program says of itself in the text format of Prometheus.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};

const READ_DEADLINE: Duration = Duration::from_secs(10);
/// The API server's own page, the largest that we read, is some 2 MiB.
const SIZE_LIMIT: usize = 64 * 1024 * 1024;

/// The samples of one scrape.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    samples: Vec<Sample>,
}

/// One line of a scrape. Histograms and summaries come as the series they are made of (`…_count`, `…_bucket`).
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The series' name, with the suffix that the format asks for.
    pub name: String,
    /// Labels, unescaped.
    pub labels: BTreeMap<String, String>,
    /// May be infinite or not a number.
    pub value: f64,
}

impl Metrics {
    /// Scrapes a page over plain HTTP.
    pub async fn read(url: &str) -> Result<Self> {
        let uri = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
        let client = Client::builder(TokioExecutor::new()).build_http::<Empty<&[u8]>>();
        let read = async {
            let answer = client
                .get(uri)
                .await
                .with_context(|| format!("failed to reach {url}"))?;
            ensure!(answer.status().is_success(), "{url} answered {}", answer.status());
            match Limited::new(answer.into_body(), SIZE_LIMIT).collect().await {
                Ok(body) => Ok(body.to_bytes()),
                Err(error) => bail!("failed to read {url}: {error}"),
            }
        };
        let body = tokio::time::timeout(READ_DEADLINE, read)
            .await
            .with_context(|| format!("{url} did not answer within {READ_DEADLINE:?}"))??;
        Self::parse(std::str::from_utf8(&body).with_context(|| format!("{url} is not text"))?)
    }

    /// Reads a page that is already here.
    pub fn parse(text: &str) -> Result<Self> {
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        let samples = lines.map(|line| sample(line).with_context(|| format!("unable to read the sample {line:?}")));
        Ok(Self {
            samples: samples.collect::<Result<_>>()?,
        })
    }

    /// The samples of this name that have at least these labels.
    pub fn select<'a>(&'a self, name: &'a str, labels: &'a [(&str, &str)]) -> impl Iterator<Item = &'a Sample> {
        self.samples.iter().filter(move |sample| {
            sample.name == name
                && labels
                    .iter()
                    .all(|&(label, value)| sample.labels.get(label).is_some_and(|found| found == value))
        })
    }

    /// The sum over [`Metrics::select`]; `None` when there is no such sample, which is not the same as zero.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.select(name, labels)
            .map(|sample| sample.value)
            .reduce(|sum, value| sum + value)
    }
}

fn sample(line: &str) -> Result<Sample> {
    let end = line.find(['{', ' ', '\t']).context("it has no value")?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(inside) => labels(inside)?,
        None => (BTreeMap::new(), rest),
    };
    // A timestamp or an exemplar may follow.
    let value = rest.split_whitespace().next().context("it has no value")?;
    let value = value.parse().with_context(|| format!("{value:?} is not a number"))?;
    Ok(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

/// Reads `name="value",…}` and returns what follows.
fn labels(mut rest: &str) -> Result<(BTreeMap<String, String>, &str)> {
    let mut labels = BTreeMap::new();
    loop {
        rest = rest.trim_start_matches([',', ' ']);
        if let Some(rest) = rest.strip_prefix('}') {
            return Ok((labels, rest));
        }
        let (name, quoted) = rest.split_once("=\"").context("a label has no value")?;
        let (value, following) = unquote(quoted)?;
        labels.insert(name.trim().to_owned(), value);
        rest = following;
    }
}

/// Reads up to the closing quote and returns what follows it.
fn unquote(text: &str) -> Result<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((position, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &text[position + 1..])),
            '\\' => match characters.next().context("a label ends in its middle")?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    bail!("a label has no closing quote")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"
# HELP requests_total Requests, "answered".
# TYPE requests_total counter
requests_total{verb="GET",path="/a\"b\\c\n}"} 3
requests_total{verb="PUT",path="/"} 4 1395066363000
rss_bytes 1.5e+06
latency_bucket{le="+Inf"} +Inf
"#;

    #[test]
    fn labels_with_quotes_backslashes_and_braces_are_read() -> Result<()> {
        let metrics = Metrics::parse(PAGE)?;
        let sample = metrics
            .select("requests_total", &[("verb", "GET")])
            .next()
            .context("the sample is missing")?;
        assert_eq!(sample.labels["path"], "/a\"b\\c\n}");
        Ok(())
    }

    #[test]
    fn sums_run_over_the_samples_with_the_labels_asked_for() -> Result<()> {
        let metrics = Metrics::parse(PAGE)?;
        assert_eq!(metrics.sum("requests_total", &[]), Some(7.0));
        assert_eq!(metrics.sum("requests_total", &[("verb", "PUT")]), Some(4.0));
        assert_eq!(metrics.sum("requests_total", &[("verb", "LIST")]), None);
        assert_eq!(metrics.sum("rss_bytes", &[]), Some(1.5e6));
        assert_eq!(metrics.sum("latency_bucket", &[("le", "+Inf")]), Some(f64::INFINITY));
        Ok(())
    }

    #[test]
    fn a_line_without_a_number_is_refused_with_its_text() {
        let error = Metrics::parse("up{a=\"b\"} yes").expect_err("it is no number");
        assert!(format!("{error:#}").contains("\"yes\" is not a number"), "{error:#}");
    }
}
