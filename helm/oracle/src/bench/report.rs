//! What was measured, as tables and as data, beside what is wanted.

use std::fmt;

use serde::Serialize;

/// Everything that one run measured. Displays as the tables of docs/benchmarks.md.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub(super) charts: Vec<Measured>,
    pub(super) floor: Floor,
    pub(super) corpus: Corpus,
    pub(super) memory: Memory,
    pub(super) growth: Vec<Growth>,
    pub(super) clusters: Clusters,
}

/// One chart, large and small. All times are medians in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Measured {
    pub(super) chart: String,
    pub(super) theirs_ms: f64,
    pub(super) cold_ms: f64,
    pub(super) phases: Phases,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Phases {
    pub(super) load_ms: f64,
    pub(super) parse_ms: f64,
    pub(super) render_ms: f64,
    pub(super) print_ms: f64,
    pub(super) documents_ms: f64,
    pub(super) output_bytes: usize,
}

impl Measured {
    fn warm_ms(&self) -> f64 {
        self.phases.render_ms + self.phases.print_ms
    }

    fn warm_ratio(&self) -> f64 {
        self.theirs_ms / self.warm_ms()
    }

    fn cold_ratio(&self) -> f64 {
        self.theirs_ms / self.cold_ms
    }
}

/// What a process takes that only prints its help, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Floor {
    pub(super) theirs_ms: f64,
    pub(super) ours_ms: f64,
}

/// Ratios of the real Helm's time to that of our process.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Corpus {
    pub(super) charts: usize,
    pub(super) median: f64,
    pub(super) tenth: f64,
}

/// Peaks of resident memory with the large chart.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Memory {
    pub(super) theirs_mib: f64,
    pub(super) ours_mib: f64,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Growth {
    pub(super) kind: String,
    pub(super) single_bytes: usize,
    pub(super) double_bytes: usize,
    pub(super) single_ms: f64,
    pub(super) double_ms: f64,
    /// Peaks of processes that render four times as much.
    pub(super) single_mib: f64,
    pub(super) double_mib: f64,
}

impl Growth {
    fn ratio(&self) -> f64 {
        self.double_ms / self.single_ms
    }
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Clusters {
    /// How many.
    pub(super) number: usize,
    /// Renderings that all of them got with equal values.
    pub(super) renderings: usize,
    /// The first one's, with all that is before it, and those of all together.
    pub(super) first_ms: f64,
    pub(super) all_ms: f64,
    /// A render of the loaded chart, with values that are always the same and with another name each time.
    pub(super) same_ms: f64,
    pub(super) different_ms: f64,
}

impl Clusters {
    fn ratio(&self) -> f64 {
        self.different_ms / self.same_ms
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_times(out)?;
        self.write_phases(out)?;
        self.write_growth(out)?;
        writeln!(out, "\n| goal | found |\n|---|---|")?;
        self.goals().iter().try_for_each(|goal| writeln!(out, "{goal}"))
    }
}

impl Report {
    fn write_times(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "| chart | helm template ms | our process ms | ratio | chart loaded ms | ratio |"
        )?;
        writeln!(out, "|---|---:|---:|---:|---:|---:|")?;
        for chart in &self.charts {
            let (name, theirs, cold) = (&chart.chart, chart.theirs_ms, chart.cold_ms);
            let (cold_ratio, warm, warm_ratio) = (chart.cold_ratio(), chart.warm_ms(), chart.warm_ratio());
            writeln!(
                out,
                "| {name} | {theirs:.1} | {cold:.1} | {cold_ratio:.1} | {warm:.2} | {warm_ratio:.0} |"
            )?;
        }
        let Floor { theirs_ms, ours_ms } = self.floor;
        writeln!(
            out,
            "| the floor: `--help` | {theirs_ms:.1} | {ours_ms:.1} | {:.1} | | |",
            theirs_ms / ours_ms
        )
    }

    fn write_phases(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "\n| chart | output bytes | load ms | parse ms | render ms | print ms | documents as data ms |"
        )?;
        writeln!(out, "|---|---:|---:|---:|---:|---:|---:|")?;
        for Measured { chart, phases, .. } in &self.charts {
            let Phases {
                load_ms,
                parse_ms,
                render_ms,
                print_ms,
                documents_ms,
                output_bytes,
            } = phases;
            writeln!(
                out,
                "| {chart} | {output_bytes} | {load_ms:.2} | {parse_ms:.2} | {render_ms:.2} | {print_ms:.2} | {documents_ms:.2} |"
            )?;
        }
        Ok(())
    }

    fn write_growth(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "\n| what grows | bytes | ms | twice: bytes | ms | time ratio | four times: MiB | eight times: MiB |"
        )?;
        writeln!(out, "|---|---:|---:|---:|---:|---:|---:|---:|")?;
        for growth in &self.growth {
            let Growth {
                kind,
                single_bytes,
                double_bytes,
                single_ms,
                double_ms,
                single_mib,
                double_mib,
            } = growth;
            let ratio = growth.ratio();
            writeln!(
                out,
                "| {kind} | {single_bytes} | {single_ms:.2} | {double_bytes} | {double_ms:.2} | {ratio:.2} | {single_mib:.1} | {double_mib:.1} |"
            )?;
        }
        Ok(())
    }

    fn goals(&self) -> Vec<String> {
        [self.goals_of_charts(), self.goals_of_growth(), self.goals_of_clusters()].concat()
    }

    fn goals_of_charts(&self) -> Vec<String> {
        let mut goals = Vec::new();
        for (chart, (warm, milliseconds, cold)) in self.charts.iter().zip([(20.0, 12.0, Some(5.0)), (100.0, 0.5, None)])
        {
            let name = &chart.chart;
            let (ratio, time) = (chart.warm_ratio(), chart.warm_ms());
            goals.push(goal(
                &format!("{name}, loaded: at least {warm} × faster"),
                ratio >= warm,
                &format!("{ratio:.0} ×"),
            ));
            let found = format!("{time:.2} ms");
            goals.push(goal(
                &format!("{name}, loaded: at most {milliseconds} ms"),
                time <= milliseconds,
                &found,
            ));
            if let Some(cold) = cold {
                let ratio = chart.cold_ratio();
                goals.push(goal(
                    &format!("{name}, cold: at least {cold} × faster"),
                    ratio >= cold,
                    &format!("{ratio:.1} ×"),
                ));
            }
        }
        let Corpus { charts, median, tenth } = self.corpus;
        let found = format!("{median:.1} × ({charts} charts, a tenth of them below {tenth:.1} ×)");
        goals.push(goal("corpus, cold: median at least 10 ×", median >= 10.0, &found));
        let Memory { ours_mib, theirs_mib } = self.memory;
        let found = format!("{ours_mib:.1} (helm: {theirs_mib:.0})");
        goals.push(goal(
            "peak MiB of our process, large chart: at most 40",
            ours_mib <= 40.0,
            &found,
        ));
        goals
    }

    fn goals_of_growth(&self) -> Vec<String> {
        let worst = |ratio: fn(&Growth) -> f64| self.growth.iter().map(ratio).fold(0.0, f64::max);
        let of = |what: &str, worst: f64| {
            goal(
                &format!("twice the output: at most 2.2 × the {what}"),
                worst <= 2.2,
                &format!("{worst:.2} ×"),
            )
        };
        vec![
            of("time", worst(Growth::ratio)),
            of("memory", worst(|growth| growth.double_mib / growth.single_mib)),
        ]
    }

    fn goals_of_clusters(&self) -> Vec<String> {
        let Clusters {
            number,
            renderings,
            first_ms,
            all_ms,
            ..
        } = self.clusters;
        let found = format!("{renderings} rendering, {all_ms:.1} ms for all, {first_ms:.1} of them for the first");
        let equal = format!("{number} clusters with equal values: one rendering");
        let different = format!("{number} clusters, one name different: at most 1.1 × the time of equal values");
        let ratio = self.clusters.ratio();
        vec![
            goal(&equal, renderings == 1, &found),
            goal(&different, ratio <= 1.1, &format!("{ratio:.2} ×")),
        ]
    }
}

fn goal(words: &str, reached: bool, found: &str) -> String {
    if reached {
        format!("| {words} | {found} |")
    } else {
        format!("| {words} | **missed: {found}** |")
    }
}
