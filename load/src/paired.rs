//! Paired comparison of figures over the rounds, with a verdict for each.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::report::RunReport;
use crate::report::figures::{FIGURES, figure_of};
use crate::resources::costs::format_value;
use crate::statistics::{MeanRatio, Spread};

/// A figure in all rounds that count.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PairedFigure {
    pub figure: &'static str,
    /// Medians of both programs; `None` if not measured.
    pub medians: [Option<f64>; 2],
    /// `None` with fewer than two rounds that count.
    pub ratio: Option<MeanRatio>,
    pub verdict: FigureVerdict,
}

/// Verdict on the second program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureVerdict {
    Better,
    Worse,
    /// The interval of the ratio includes 1, or there is none.
    Inconclusive,
    /// The figure depends on the machine's speed, or says why another one changed.
    Reported,
}

/// Direction in which a figure improves; `Unjudged` for figures that are reported only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Improvement {
    Up,
    Down,
    Unjudged,
}

const MAX_SHOWN_RATIO: f64 = 100.0;

/// Judged figures: label, name, and the name of the figure that it is divided by.
///
/// The generator does the same work for both programs, so CPU time in units of its own is independent of the
/// speed of the machine.
const JUDGED: [(&str, Improvement, &str, Option<&str>); 4] = [
    ("orders/s", Improvement::Up, "orders_per_s", None),
    (
        "service CPU / generator CPU",
        Improvement::Down,
        "service_cpu",
        Some("generator_cpu"),
    ),
    (
        "Postgres CPU / generator CPU",
        Improvement::Down,
        "postgres_cpu",
        Some("generator_cpu"),
    ),
    ("WAL, bytes per order", Improvement::Down, "wal_bytes", None),
];

/// Compares all figures over the rounds whose audits passed: the judged ones, then the others of a report.
pub(crate) fn compare_turns(rounds: &[[&RunReport; 2]]) -> Vec<PairedFigure> {
    let counting = rounds
        .iter()
        .filter(|turns| turns.iter().all(|turn| turn.audit.has_passed()));
    // A report that is not JSON has no figures.
    let counting: Vec<_> = counting
        .map(|turns| turns.map(|turn| serde_json::to_value(turn).unwrap_or_default()))
        .collect();
    let compare = |label, improvement, name: &str, divisor: Option<&str>| {
        let read = |run: &Value| {
            let unit = divisor.map_or(Some(1.0), |divisor| figure_of(run, divisor))?;
            Some(figure_of(run, name)? / unit).filter(|value| value.is_finite())
        };
        let values =
            [0, 1].map(|program: usize| counting.iter().map(|turns| read(&turns[program])).collect());
        compare_values(label, improvement, &values)
    };
    let judged = JUDGED.map(|(label, improvement, name, divisor)| compare(label, improvement, name, divisor));
    let others = FIGURES.iter().filter(|figure| {
        let mut judged = JUDGED.iter();
        !judged.any(|(_, _, name, divisor)| *name == figure.name && divisor.is_none())
    });
    let others = others.map(|figure| compare(figure.label, Improvement::Unjudged, figure.name, None));
    judged.into_iter().chain(others).collect()
}

fn compare_values(
    figure: &'static str,
    improvement: Improvement,
    [base, candidate]: &[Vec<Option<f64>>; 2],
) -> PairedFigure {
    let median = |values: &[Option<f64>]| Some(Spread::from_values(values.iter().copied().flatten())?.median);
    let ratio = MeanRatio::from_pairs(candidate, base);
    PairedFigure {
        figure,
        medians: [median(base), median(candidate)],
        ratio,
        verdict: judge(ratio, improvement),
    }
}

/// A difference counts if the whole interval is on one side of 1.
fn judge(ratio: Option<MeanRatio>, improvement: Improvement) -> FigureVerdict {
    match (ratio, improvement) {
        (_, Improvement::Unjudged) => FigureVerdict::Reported,
        (Some(ratio), Improvement::Up) if ratio.low > 1.0 => FigureVerdict::Better,
        (Some(ratio), Improvement::Down) if ratio.high < 1.0 => FigureVerdict::Better,
        (Some(ratio), Improvement::Up) if ratio.high < 1.0 => FigureVerdict::Worse,
        (Some(ratio), Improvement::Down) if ratio.low > 1.0 => FigureVerdict::Worse,
        _ => FigureVerdict::Inconclusive,
    }
}

impl PairedFigure {
    pub(crate) fn is_worse(&self) -> bool {
        self.verdict == FigureVerdict::Worse
    }
}

impl fmt::Display for FigureVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::Worse => "WORSE",
            Self::Inconclusive => "inconclusive",
            Self::Reported => "",
        })
    }
}

/// Two rounds that differ give an interval over many powers of ten.
fn describe_interval(ratio: MeanRatio) -> String {
    if ratio.high > MAX_SHOWN_RATIO {
        "too few rounds".to_owned()
    } else {
        format!("{:.3} to {:.3}", ratio.low, ratio.high)
    }
}

pub(crate) fn write_table(f: &mut fmt::Formatter<'_>, figures: &[PairedFigure]) -> fmt::Result {
    writeln!(
        f,
        "{:<30}{:>14}{:>14}{:>10}{:>18}{:>18}{:>8}  verdict",
        "", "A (median)", "B (median)", "B / A", "interval", "range", "rounds"
    )?;
    for PairedFigure {
        figure,
        medians,
        ratio,
        verdict,
    } in figures
    {
        let [base, candidate] = medians.map(format_value);
        let [mean, interval, range, count] = ratio.map_or_else(
            || [const { String::new() }; 4],
            |ratio| {
                [
                    format!("{:.3} ×", ratio.mean),
                    describe_interval(ratio),
                    format!("{:.3} to {:.3}", ratio.min, ratio.max),
                    ratio.count.to_string(),
                ]
            },
        );
        writeln!(
            f,
            "{figure:<30}{base:>14}{candidate:>14}{mean:>10}{interval:>18}{range:>18}{count:>8}  {verdict}"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().map(|value| Some(*value)).collect()
    }

    #[test]
    fn verdict_needs_the_interval_on_one_side_of_one() {
        let base = some(&[100.0, 200.0, 150.0, 120.0]);
        // The rounds differ in speed, the ratios hardly do.
        let more = some(&[110.0, 221.0, 164.0, 132.0]);
        let noisy = some(&[130.0, 180.0, 190.0, 100.0]);
        for (improvement, candidate, verdict) in [
            (Improvement::Up, &more, FigureVerdict::Better),
            (Improvement::Down, &more, FigureVerdict::Worse),
            (Improvement::Up, &noisy, FigureVerdict::Inconclusive),
            (Improvement::Down, &noisy, FigureVerdict::Inconclusive),
        ] {
            let compared = compare_values("figure", improvement, &[base.clone(), candidate.clone()]);
            assert_eq!(compared.verdict, verdict, "{compared:?}");
            let opposite = compare_values("figure", improvement, &[candidate.clone(), base.clone()]);
            assert_eq!(
                opposite.verdict == FigureVerdict::Inconclusive,
                verdict == FigureVerdict::Inconclusive
            );
            assert_ne!(
                opposite.is_worse(),
                verdict != FigureVerdict::Better,
                "{opposite:?}"
            );
        }
    }

    #[test]
    fn figure_without_two_rounds_is_inconclusive() {
        for values in [vec![], some(&[5.0]), vec![None, Some(5.0)]] {
            let base = some(&[1.0, 1.0]);
            let compared = compare_values("figure", Improvement::Up, &[base, values]);
            assert_eq!(
                (compared.ratio, compared.verdict),
                (None, FigureVerdict::Inconclusive)
            );
        }
    }
}
