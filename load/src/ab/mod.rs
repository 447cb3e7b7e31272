//! Comparison of two service programs in alternating turns: each turn is a run of the same scenario on a new
//! deployment, and ratios are taken within a round, so that the speed of the machine in that round cancels.
//!
//! Rule: a round counts only if the audits of both turns passed.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::deployment::run_in_new_deployment;
use crate::paired::{PairedFigure, compare_turns, write_table};
use crate::report::{RunReport, Verdict};
use crate::scenario_run::{GeneratorOptions, run_scenario};
use crate::traffic::scenario::Scenario;

/// Names of the programs in reports.
const NAMES: [&str; 2] = ["A", "B"];

/// Parameters of a comparison.
#[derive(Clone, Debug)]
pub struct AbPlan<'a> {
    /// The base of the ratios, and the program that gets the verdicts.
    pub programs: [&'a Path; 2],
    pub scenario: &'a Scenario,
    pub rounds: usize,
    pub options: GeneratorOptions,
}

/// Report of a comparison, with all runs.
#[derive(Clone, Debug, Serialize)]
pub struct AbReport {
    pub scenario: String,
    pub programs: [String; 2],
    pub figures: Vec<PairedFigure>,
    /// Turns of both programs, by round.
    pub rounds: Vec<[RunReport; 2]>,
}

/// Runs the comparison; `report_progress` receives one line per turn.
///
/// # Errors
/// If a program cannot be started or a run could not complete. Errors of the service are in the report.
pub fn compare_programs(
    plan: &AbPlan<'_>,
    report_progress: &mut impl FnMut(&str),
) -> anyhow::Result<AbReport> {
    let mut rounds = Vec::with_capacity(plan.rounds);
    for round in 0..plan.rounds {
        let mut turn = |index: usize| {
            let report = run_in_new_deployment(plan.programs[index], |deployment| {
                run_scenario(plan.scenario, deployment, plan.options)
            })?;
            let (name, rate) = (NAMES[index], report.metrics.orders_per_s);
            report_progress(&format!("round {}, {name}: {rate:.0} orders/s", round + 1));
            anyhow::Ok(report)
        };
        // The second turn may find the machine warmer or busier than the first.
        rounds.push(if round % 2 == 0 {
            [turn(0)?, turn(1)?]
        } else {
            let second = turn(1)?;
            [turn(0)?, second]
        });
    }
    Ok(AbReport {
        scenario: format!("{}, {} s", plan.scenario.name, plan.scenario.seconds),
        programs: plan.programs.map(|program| program.display().to_string()),
        figures: compare_turns(&rounds.iter().map(<[RunReport; 2]>::each_ref).collect::<Vec<_>>()),
        rounds,
    })
}

impl AbReport {
    /// Passed unless an audit failed or a figure is worse. Inconclusive figures show no difference with this
    /// number of rounds.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if !self.turns().all(|(_, _, turn)| turn.audit.has_passed()) {
            Verdict::AuditFailed
        } else if self.figures.iter().any(PairedFigure::is_worse) {
            Verdict::ThresholdMissed
        } else {
            Verdict::Passed
        }
    }

    /// Rounds from 1, names and runs of all turns.
    fn turns(&self) -> impl Iterator<Item = (usize, &'static str, &RunReport)> {
        let rounds = self.rounds.iter().enumerate();
        rounds.flat_map(|(index, turns)| {
            let turns = NAMES.into_iter().zip(turns);
            turns.map(move |(name, turn)| (index + 1, name, turn))
        })
    }
}

impl fmt::Display for AbReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (round, name, turn) in self.turns().take(NAMES.len()) {
            let conditions = turn.conditions.rows();
            if round == 1 && name == NAMES[0] {
                for (name, value) in conditions.iter().filter(|(name, _)| *name != "program") {
                    writeln!(f, "{name:<14}{value}")?;
                }
            }
            let path = &self.programs[usize::from(name != NAMES[0])];
            let program = conditions.into_iter().find(|(name, _)| *name == "program");
            let program = program.map_or_else(String::new, |(_, value)| value);
            writeln!(f, "{name:<14}{path}: {program}")?;
        }
        let doubted: Vec<_> = self
            .turns()
            .filter(|(_, _, turn)| !turn.doubts.is_empty())
            .collect();
        if let Some((round, name, turn)) = doubted.first() {
            let (count, all, doubt) = (doubted.len(), self.turns().count(), turn.doubts.join("; "));
            writeln!(
                f,
                "WARNING: {count} of {all} turns are in doubt, first round {round}, {name}: {doubt}"
            )?;
        }
        for (round, name, turn) in self.turns() {
            for check in turn.audit.checks.iter().filter(|check| !check.passed) {
                let (check, detail) = (check.name, &check.detail);
                writeln!(
                    f,
                    "FAILED: round {round}, {name}: {check}: {detail}; the round does not count"
                )?;
            }
        }
        let rounds = self.rounds.len();
        writeln!(
            f,
            "\n{}, {rounds} rounds; ratios of B to A within a round, intervals of 95 % for all figures together",
            self.scenario
        )?;
        write_table(f, &self.figures)
    }
}
