//! Contenders and results of a comparison: one column per contender and load, one turn per round.
//!
//! Rule: a turn that does not count enters no median and no ratio.

use serde::Serialize;
use vouchsafe_load::resources::conditions::Conditions;
use vouchsafe_load::statistics::{Spread, paired_ratios};
use vouchsafe_load::traffic::pace::{Pace, Spacing};

use super::turn::{LoadSettings, Turn};

/// A compared system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    Service,
    /// One transaction per order with row locks.
    Peer,
    /// Plain batch inserts behind the HTTP stack.
    Floor,
}

/// In the order of their turns in a round.
pub(crate) const CONTENDERS: [Contender; 3] = [Contender::Service, Contender::Peer, Contender::Floor];

impl Contender {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Peer => "peer",
            Self::Floor => "floor behind HTTP",
        }
    }
}

/// Turns of one contender under one load, by round.
#[derive(Clone, Debug, Serialize)]
pub struct Column {
    pub contender: Contender,
    pub load: LoadSettings,
    pub turns: Vec<Turn>,
}

impl Column {
    /// Orders/s by round; `None` for a turn that does not count.
    pub(crate) fn counted_rates(&self) -> Vec<Option<f64>> {
        self.turns.iter().map(Turn::counted_rate).collect()
    }

    /// Orders/s of the turns that count.
    pub(crate) fn spread(&self) -> Option<Spread> {
        Spread::from_values(self.counted_rates().into_iter().flatten())
    }

    /// Median of a metric over the turns that count; `None` if it is unknown for all of them.
    pub(crate) fn median(&self, metric: impl Fn(&Turn) -> Option<f64>) -> Option<f64> {
        let counting = self.turns.iter().filter(|turn| turn.counted_rate().is_some());
        Some(Spread::from_values(counting.filter_map(metric))?.median)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct CompareReport {
    pub pool: u32,
    /// By load, then in the order of the turns.
    pub columns: Vec<Column>,
    /// All contenders use the same server.
    pub conditions: Conditions,
}

impl CompareReport {
    /// Ratio of two contenders under one load, by round.
    pub(crate) fn ratio(&self, numerator: Contender, denominator: Contender, pace: Pace) -> Option<Spread> {
        let counted = |contender| {
            let column = self
                .columns
                .iter()
                .find(|column| column.contender == contender && column.load.pace == pace)?;
            Some(column.counted_rates())
        };
        paired_ratios(&counted(numerator)?, &counted(denominator)?)
    }

    #[must_use]
    pub fn has_passed(&self) -> bool {
        let turns = self.columns.iter().flat_map(|column| &column.turns);
        turns.into_iter().all(|turn| turn.counted_rate().is_some())
    }
}

/// Columns without turns, for each load and contender.
pub(super) fn empty_columns(loads: &[LoadSettings]) -> Vec<Column> {
    let columns = |load: &LoadSettings| {
        CONTENDERS.map(|contender| Column {
            contender,
            load: *load,
            turns: Vec::new(),
        })
    };
    loads.iter().flat_map(columns).collect()
}

/// Open loop at half of the peer's best rate; `None` if no turn of the peer counts.
pub(super) fn half_peer_rate(columns: &[Column], load: LoadSettings) -> Option<LoadSettings> {
    let of_peer = columns
        .iter()
        .filter(|column| column.contender == Contender::Peer);
    let best = Spread::from_values(of_peer.filter_map(|column| Some(column.spread()?.median)))?.max;
    let pace = Pace::Open {
        connections: load.pace.connections(),
        per_second: (best / 2.0).round(),
        spacing: Spacing::Poisson,
    };
    Some(LoadSettings { pace, ..load })
}

#[cfg(test)]
mod tests {
    use vouchsafe_load::resources::costs::{OrderCosts, ThreadCost};
    use vouchsafe_load::resources::proc::Component;

    use super::*;
    use crate::compare::turn::tests::turn;

    const CLOSED: Pace = Pace::Closed { connections: 256 };

    /// Report of two rounds; `second_passed` is the audit result of the service's second turn.
    fn report(second_passed: bool) -> CompareReport {
        let load = LoadSettings {
            pace: CLOSED,
            warm_up_s: 1,
            seconds: 2,
        };
        let mut columns = empty_columns(&[load]);
        for column in &mut columns {
            column.turns = match column.contender {
                Contender::Service => vec![turn(4_000.0, true), turn(9_000.0, second_passed)],
                _ => vec![turn(1_000.0, true), turn(1_500.0, true)],
            };
        }
        CompareReport {
            pool: 4,
            columns,
            conditions: Conditions::default(),
        }
    }

    #[test]
    fn rejected_turn_enters_no_ratio() {
        for (second_passed, median, count, shown) in [
            (true, 5.0, 2, "5.00 × (4.00–6.00)"),
            (false, 4.0, 1, "does not count: vouchers unique: 1 repeated"),
        ] {
            let report = report(second_passed);
            let ratio = report.ratio(Contender::Service, Contender::Peer, CLOSED).unwrap();
            assert_eq!((ratio.median, ratio.count), (median, count));
            assert_eq!(report.has_passed(), second_passed);
            let text = report.to_string();
            assert!(text.contains(shown) && text.contains("load average"), "{text}");
        }
    }

    #[test]
    fn costs_cover_counting_turns_only() {
        let mut report = report(false);
        let costs = |cpu_us| OrderCosts {
            threads: Some(vec![ThreadCost {
                component: Component::Service,
                name: "worker".to_owned(),
                threads: 1,
                cpu_us,
            }]),
            ..OrderCosts::default()
        };
        report.columns[0].turns[0].costs = Some(costs(61.5));
        report.columns[0].turns[1].costs = Some(costs(7.0));
        let text = report.to_string();
        let (_, costs) = text.split_once("cost per order").unwrap();
        let line = costs
            .lines()
            .find(|line| line.starts_with("service, 256"))
            .unwrap();
        let cells: Vec<_> = line.split_whitespace().skip(3).collect();
        assert_eq!(cells[..3], ["61.5", "0.000", "0.000"]);
    }

    #[test]
    fn open_loop_has_half_the_peer_rate() {
        let columns = report(true).columns;
        let load = columns[0].load;
        let expected = Pace::Open {
            connections: 256,
            per_second: 625.0,
            spacing: Spacing::Poisson,
        };
        assert_eq!(half_peer_rate(&columns, load).unwrap().pace, expected);
        assert_eq!(half_peer_rate(&columns[..1], load), None);
    }
}
