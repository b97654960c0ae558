//! The harness: who is measured when, and what is said about it. It knows no backend.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

/// What a person asked for.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// How many pairs a row measures, unless it is heavy.
    pub(crate) pairs: u32,
    /// Only rows whose name contains this.
    pub(crate) only: Option<String>,
}

/// What a row measures.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// `backend: what`.
    pub(crate) name: &'static str,
    /// Whom we are measured against.
    pub(crate) peer: &'static str,
    /// At most so many pairs: for rows that take long.
    pub(crate) max_pairs: u32,
    /// How many bytes one measurement moves, where throughput is the question.
    pub(crate) bytes: Option<u64>,
}

/// A run of the bench.
#[derive(Debug)]
pub(crate) struct Bench {
    options: Options,
    rows: Vec<RowReport>,
    skipped: Vec<Skipped>,
}

impl Bench {
    /// An empty run.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            rows: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Whether a row of this name is asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.options
            .only
            .as_deref()
            .is_none_or(|only| name.contains(only))
    }

    /// Says that a row cannot be measured here, and why.
    pub(crate) fn skip(&mut self, name: &'static str, reason: impl Into<String>) {
        if self.wants(name) {
            self.skipped.push(Skipped {
                name,
                reason: reason.into(),
            });
        }
    }

    /// Measures `ours` and `peer` in turn. Who goes first changes from pair to pair, so that what
    /// drifts (clocks, caches, neighbours) meets both alike.
    pub(crate) async fn row(
        &mut self,
        row: Row,
        mut ours: impl AsyncFnMut() -> Result<()>,
        mut peer: impl AsyncFnMut() -> Result<()>,
    ) -> Result<()> {
        if !self.wants(row.name) {
            return Ok(());
        }
        eprintln!("measuring {} …", row.name);
        let pairs = self.options.pairs.min(row.max_pairs);
        for _ in 0..(pairs / 10).clamp(1, 10) {
            ours()
                .await
                .with_context(|| format!("{}: ours", row.name))?;
            peer()
                .await
                .with_context(|| format!("{}: peer", row.name))?;
        }
        let mut samples = Vec::new();
        for pair in 0..pairs {
            let sample = if pair % 2 == 0 {
                let ours = timed(&mut ours).await?;
                Pair {
                    ours,
                    peer: timed(&mut peer).await?,
                }
            } else {
                let peer = timed(&mut peer).await?;
                Pair {
                    ours: timed(&mut ours).await?,
                    peer,
                }
            };
            samples.push(sample);
        }
        self.rows.push(RowReport::new(row, &samples)?);
        Ok(())
    }

    /// What was measured. Nothing at all is an error: a misspelt row must not look like success.
    pub(crate) fn finish(self) -> Result<Report> {
        if self.rows.is_empty() && self.skipped.is_empty() {
            bail!("no row was measured: none of that name, or no backend compiled in");
        }
        let cpus = std::thread::available_parallelism().map_or(0, usize::from);
        Ok(Report {
            cpus,
            rows: self.rows,
            skipped: self.skipped,
        })
    }
}

async fn timed(side: &mut impl AsyncFnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    side().await?;
    Ok(start.elapsed())
}

/// One measurement of each side, one right after the other.
#[derive(Debug, Clone, Copy)]
struct Pair {
    ours: Duration,
    peer: Duration,
}

/// Everything a run found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    cpus: usize,
    rows: Vec<RowReport>,
    skipped: Vec<Skipped>,
}

/// What a row found.
#[derive(Debug, Serialize)]
struct RowReport {
    name: &'static str,
    peer_name: &'static str,
    pairs: usize,
    ours: Side,
    peer: Side,
    /// The median over the pairs of ours divided by the peer's: above 1 we are slower.
    ratio: f64,
}

/// A row that could not be measured.
#[derive(Debug, Serialize)]
struct Skipped {
    name: &'static str,
    reason: String,
}

/// One side of a row.
#[derive(Debug, Serialize)]
struct Side {
    median_us: f64,
    p99_us: f64,
    /// 10⁹ bytes a second, at the median.
    #[serde(skip_serializing_if = "Option::is_none")]
    gb_per_s: Option<f64>,
}

impl RowReport {
    fn new(row: Row, samples: &[Pair]) -> Result<Self> {
        let side = |pick: fn(&Pair) -> Duration| {
            Side::new(
                samples
                    .iter()
                    .map(|pair| pick(pair).as_secs_f64())
                    .collect(),
                row.bytes,
            )
        };
        let ratios = samples
            .iter()
            .map(|pair| pair.ours.as_secs_f64() / pair.peer.as_secs_f64())
            .collect();
        Ok(Self {
            name: row.name,
            peer_name: row.peer,
            pairs: samples.len(),
            ours: side(|pair| pair.ours)?,
            peer: side(|pair| pair.peer)?,
            ratio: quantile(ratios, 0.5)?,
        })
    }
}

impl Side {
    fn new(seconds: Vec<f64>, bytes: Option<u64>) -> Result<Self> {
        let median = quantile(seconds.clone(), 0.5)?;
        Ok(Self {
            median_us: median * 1e6,
            p99_us: quantile(seconds, 0.99)? * 1e6,
            #[expect(clippy::cast_precision_loss, reason = "a rate, shown with two digits")]
            gb_per_s: bytes.map(|bytes| bytes as f64 / median / 1e9),
        })
    }
}

/// The value with that share of all others at or below it (nearest rank); the mean of the two in
/// the middle for the median of an even number.
fn quantile(mut values: Vec<f64>, share: f64) -> Result<f64> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index below the number of samples"
    )]
    let rank = ((count as f64 * share).ceil() as usize).max(1);
    let value = *values.get(rank - 1).context("nothing was measured")?;
    if share == 0.5 && count.is_multiple_of(2) {
        return Ok(f64::midpoint(value, values[rank]));
    }
    Ok(value)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self
            .rows
            .iter()
            .map(|row| row.name.chars().count())
            .max()
            .unwrap_or(0)
            .max(3);
        writeln!(
            f,
            "{:width$}  {:>5}  {:>12} {:>12}  {:>12} {:>12}  {:>6}  peer",
            "row", "pairs", "ours median", "ours p99", "peer median", "peer p99", "ratio",
        )?;
        for row in &self.rows {
            writeln!(
                f,
                "{:width$}  {:>5}  {:>12} {:>12}  {:>12} {:>12}  {:>6.3}  {}",
                row.name,
                row.pairs,
                time(row.ours.median_us),
                time(row.ours.p99_us),
                time(row.peer.median_us),
                time(row.peer.p99_us),
                row.ratio,
                row.peer_name,
            )?;
            if let (Some(ours), Some(peer)) = (row.ours.gb_per_s, row.peer.gb_per_s) {
                writeln!(
                    f,
                    "{:width$}  {:>5}  {:>12} {:>12}  {:>12}",
                    "",
                    "",
                    format!("{ours:.2} GB/s"),
                    "",
                    format!("{peer:.2} GB/s"),
                )?;
            }
        }
        for skipped in &self.skipped {
            writeln!(f, "skipped: {}: {}", skipped.name, skipped.reason)?;
        }
        writeln!(
            f,
            "{} CPUs; ratio = median over the pairs of ours / peer",
            self.cpus
        )
    }
}

fn time(us: f64) -> String {
    if us < 1e3 {
        format!("{us:.1} µs")
    } else if us < 1e6 {
        format!("{:.3} ms", us / 1e3)
    } else {
        format!("{:.3} s", us / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Row = Row {
        name: "test: row",
        peer: "nobody",
        max_pairs: 100,
        bytes: Some(1000),
    };

    fn pair(ours: u64, peer: u64) -> Pair {
        Pair {
            ours: Duration::from_micros(ours),
            peer: Duration::from_micros(peer),
        }
    }

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let hundred = || (1..=100).map(f64::from).collect::<Vec<_>>();
        assert_eq!(quantile(hundred(), 0.99).unwrap(), 99.0);
        assert_eq!(quantile(hundred(), 0.5).unwrap(), 50.5);
        assert_eq!(quantile(vec![3.0, 1.0, 2.0], 0.5).unwrap(), 2.0);
        assert!(quantile(Vec::new(), 0.5).is_err());
    }

    #[test]
    fn the_ratio_is_the_median_of_the_ratios_of_pairs() {
        // A slow machine in one pair changes both sides of it, and so no ratio.
        let report = RowReport::new(ROW, &[pair(2, 1), pair(2000, 1000), pair(4, 2)]).unwrap();
        assert!((report.ratio - 2.0).abs() < 1e-9, "{report:?}");
        assert!(
            (report.ours.gb_per_s.unwrap() - 0.25).abs() < 1e-9,
            "{report:?}"
        );
    }

    #[test]
    fn every_row_measures_both_sides_equally_often() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let mut bench = Bench::new(Options {
            pairs: 7,
            only: None,
        });
        let (mut ours, mut peer) = (0, 0);
        runtime
            .block_on(bench.row(
                ROW,
                async || {
                    ours += 1;
                    Ok(())
                },
                async || {
                    peer += 1;
                    Ok(())
                },
            ))
            .unwrap();
        // One more for warming up.
        assert_eq!((ours, peer), (8, 8));
        let text = bench.finish().unwrap().to_string();
        assert!(
            text.contains("test: row") && text.contains("nobody"),
            "{text}"
        );
    }

    #[test]
    fn a_run_that_measured_nothing_is_an_error() {
        let bench = Bench::new(Options {
            pairs: 1,
            only: Some("misspelt".to_owned()),
        });
        assert!(bench.finish().is_err());
    }
}
