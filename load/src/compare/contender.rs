//! Contenders and results of a comparison: one column per contender and load, one turn per round.
//!
//! Rule: a turn that does not count enters no median and no ratio.

use serde::Serialize;

use super::floor::FloorReport;
use super::search::{PeerSearchReport, PeerVariant};
use super::statistics::{Spread, paired_ratios};
use super::turn::{LoadSettings, Turn};
use crate::resources::database::DatabaseFacts;
use crate::resources::machine::Machine;
use crate::traffic::pace::{Pace, Spacing};

/// A compared system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    Service,
    /// One transaction per order with row locks.
    Peer,
    /// Plain batch inserts behind the HTTP stack.
    Floor,
    /// HTTP stack and signature check only.
    Signature,
}

/// In the order of their turns in a round.
pub const CONTENDERS: [Contender; 4] = [
    Contender::Service,
    Contender::Peer,
    Contender::Floor,
    Contender::Signature,
];

impl Contender {
    /// Name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Peer => "peer",
            Self::Floor => "floor behind HTTP",
            Self::Signature => "signature only",
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
    #[must_use]
    pub fn counted_rates(&self) -> Vec<Option<f64>> {
        self.turns.iter().map(Turn::counted_rate).collect()
    }

    /// Orders/s of the turns that count.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        Spread::from_values(self.counted_rates().into_iter().flatten())
    }

    /// Median of a metric over the turns that count; `None` if it is unknown for all of them.
    #[must_use]
    pub fn median(&self, metric: impl Fn(&Turn) -> Option<f64>) -> Option<f64> {
        let counting = self.turns.iter().filter(|turn| turn.counted_rate().is_some());
        Some(Spread::from_values(counting.filter_map(metric))?.median)
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct CompareReport {
    pub variant: PeerVariant,
    /// The search that selected the peer; `None` if it was given.
    pub search: Option<PeerSearchReport>,
    /// By load, then in the order of [`CONTENDERS`].
    pub columns: Vec<Column>,
    /// Floor without HTTP, by round.
    pub floors: Vec<FloorReport>,
    /// State of the service's database at the end.
    pub service_database: DatabaseFacts,
    pub peer_database: DatabaseFacts,
    /// Before the start of the deployment and after the last turn.
    pub machine: Machine,
}

impl CompareReport {
    /// Ratio of two contenders under one load, by round.
    #[must_use]
    pub fn ratio(&self, numerator: Contender, denominator: Contender, pace: Pace) -> Option<Spread> {
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
            && self.floors.iter().all(|floor| floor.rows.passed)
    }
}

/// Columns without turns, for each load and contender.
pub(super) fn empty_columns(loads: &[LoadSettings]) -> Vec<Column> {
    let metric = |load: &LoadSettings| {
        CONTENDERS.map(|contender| Column {
            contender,
            load: *load,
            turns: Vec::new(),
        })
    };
    loads.iter().flat_map(metric).collect()
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
    use super::*;
    use crate::audit::{Audit, Check};
    use crate::resources::costs::{Component, OrderCosts, ThreadCost};

    const CLOSED: Pace = Pace::Closed { connections: 256 };

    fn turn(orders_per_s: f64, audit: Result<&str, &str>) -> Turn {
        let result = audit.map(str::to_owned).map_err(str::to_owned);
        Turn {
            orders_per_s,
            orders: 10,
            p50_us: 1_000,
            p99_us: 2_500,
            p99_9_us: 3_000,
            outcomes: [("201".to_owned(), 10)].into(),
            costs: None,
            audit: Audit {
                checks: vec![Check::new("vouchers unique", result)],
            },
            machine: Machine::observe_before(),
        }
    }

    fn facts() -> DatabaseFacts {
        DatabaseFacts {
            fsync: "on".to_owned(),
            synchronous_commit: "on".to_owned(),
            tables: Vec::new(),
        }
    }

    /// Report of two rounds; `second` is the audit result of the service's second turn.
    fn report(second: Result<&str, &str>) -> CompareReport {
        let load = LoadSettings {
            pace: CLOSED,
            threads: 1,
            warm_up_s: 1,
            seconds: 2,
        };
        let mut columns = empty_columns(&[load]);
        for column in &mut columns {
            let (one, two, audit) = match column.contender {
                Contender::Service => (4_000.0, 9_000.0, second),
                _ => (1_000.0, 1_500.0, Ok("")),
            };
            column.turns = vec![turn(one, Ok("")), turn(two, audit)];
        }
        CompareReport {
            variant: PeerVariant {
                shape: vouchsafe_peer::TransactionShape::Function,
                pool: 8,
            },
            search: None,
            columns,
            floors: Vec::new(),
            service_database: facts(),
            peer_database: facts(),
            machine: Machine::observe_before(),
        }
    }

    #[test]
    fn rejected_turn_enters_no_ratio() {
        let passed_report = report(Ok(""));
        let ratio = passed_report
            .ratio(Contender::Service, Contender::Peer, CLOSED)
            .unwrap();
        assert_eq!((ratio.median, ratio.min, ratio.max), (5.0, 4.0, 6.0));
        assert!(passed_report.has_passed());
        let text = passed_report.to_string();
        assert!(
            text.contains("5.00 × (4.00–6.00)") && text.contains("fsync on"),
            "{text}"
        );

        let failed_report = report(Err("1 repeated"));
        let ratio = failed_report
            .ratio(Contender::Service, Contender::Peer, CLOSED)
            .unwrap();
        assert_eq!((ratio.median, ratio.count), (4.0, 1));
        assert!(!failed_report.has_passed());
        let text = failed_report.to_string();
        assert!(
            text.contains("does not count: vouchers unique: 1 repeated"),
            "{text}"
        );
    }

    #[test]
    fn costs_cover_counting_turns_only() {
        let mut report = report(Err("1 repeated"));
        let costs = |cpu_us| OrderCosts {
            parts: Some(vec![ThreadCost {
                component: Component::Service,
                name: "worker".to_owned(),
                tasks: 1,
                cpu_us,
                voluntary_switches: 0.25,
                involuntary_switches: 0.0,
            }]),
            ..OrderCosts::default()
        };
        report.columns[0].turns[0].costs = Some(costs(61.5));
        report.columns[0].turns[1].costs = Some(costs(7.0));
        let text = report.to_string();
        let line = text
            .lines()
            .find(|line| line.starts_with("service, 256 connections"))
            .unwrap();
        let cells: Vec<_> = line.split_whitespace().skip(3).collect();
        assert_eq!(cells, ["61.5", "0.000", "0.000", "0.250", "0.000", "–", "–"]);
    }

    #[test]
    fn open_loop_has_half_the_peer_rate() {
        let columns = report(Ok("")).columns;
        let load = columns[0].load;
        let open = half_peer_rate(&columns, load).unwrap().pace;
        let Pace::Open {
            connections,
            per_second,
            ..
        } = open
        else {
            panic!("{open:?}")
        };
        assert_eq!((connections, per_second), (256, 625.0));
        assert_eq!(half_peer_rate(&columns[..1], load), None);
    }
}
