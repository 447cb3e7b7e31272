//! SVG line plots, inlined in the HTML report.

use maud::{Markup, html};

/// In user units; the page scales the SVG.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 260.0;
/// Left margin with the labels.
const LEFT: f64 = 64.0;
/// Bottom margin with the labels.
const BELOW: f64 = 28.0;
/// Top and right margin.
const MARGIN: f64 = 14.0;

/// Grid line with a label.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    /// From 0 to 1.
    pub(super) at: f64,
    pub(super) text: String,
}

/// Plot of points with coordinates from 0 to 1.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    /// Caption and accessible label.
    pub(super) title: &'static str,
    /// Vertical grid lines.
    pub(super) x_marks: Vec<Mark>,
    /// Horizontal grid lines.
    pub(super) y_marks: Vec<Mark>,
    pub(super) points: Vec<(f64, f64)>,
}

impl Plot {
    pub(super) fn svg(&self) -> Markup {
        let line: Vec<_> = self
            .points
            .iter()
            .map(|(at, height)| format!("{:.1},{:.1}", x(*at), y(*height)))
            .collect();
        html! {
            figure {
                figcaption { (self.title) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.title) {
                    @for mark in &self.x_marks {
                        line.grid x1=(format_coordinate(x(mark.at))) x2=(format_coordinate(x(mark.at))) y1=(format_coordinate(y(0.0))) y2=(format_coordinate(y(1.0))) {}
                        text x=(format_coordinate(x(mark.at))) y=(format_coordinate(HEIGHT - 8.0)) text-anchor="middle" { (mark.text) }
                    }
                    @for mark in &self.y_marks {
                        line.grid x1=(format_coordinate(x(0.0))) x2=(format_coordinate(x(1.0))) y1=(format_coordinate(y(mark.at))) y2=(format_coordinate(y(mark.at))) {}
                        text x=(format_coordinate(LEFT - 6.0)) y=(format_coordinate(y(mark.at) + 4.0)) text-anchor="end" { (mark.text) }
                    }
                    polyline points=(line.join(" ")) {}
                }
            }
        }
    }
}

fn x(at: f64) -> f64 {
    LEFT + at * (WIDTH - LEFT - MARGIN)
}

fn y(height: f64) -> f64 {
    HEIGHT - BELOW - height * (HEIGHT - BELOW - MARGIN)
}

fn format_coordinate(value: f64) -> String {
    format!("{value:.1}")
}

/// Grid lines from 0 to the first round number not below `top`, and that number.
pub(super) fn linear(top: f64) -> (Vec<Mark>, f64) {
    let step = round_step(top / 4.0);
    let count = (top / step).ceil().max(1.0);
    let end = step * count;
    let marks = (0..)
        .map(|index| f64::from(index) * step)
        .take_while(|value| *value <= end)
        .map(|value| Mark {
            at: value / end,
            text: format!("{value}"),
        })
        .collect();
    (marks, end)
}

/// 1, 2 or 5 times a power of ten, at least `least` and at least 1.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| *step >= least)
        .unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axis_ends_at_round_number() {
        for (top, expected) in [
            (0.0, vec!["0", "1"]),
            (3.0, vec!["0", "1", "2", "3"]),
            (100.0, vec!["0", "50", "100"]),
            (4_900.0, vec!["0", "2000", "4000", "6000"]),
        ] {
            let (marks, end) = linear(top);
            let texts: Vec<_> = marks.iter().map(|mark| mark.text.as_str()).collect();
            assert_eq!(texts, expected, "{top}");
            assert_eq!(format!("{end}"), expected[expected.len() - 1]);
        }
    }

    #[test]
    fn higher_value_is_drawn_higher() {
        let plot = Plot {
            title: "t",
            x_marks: vec![],
            y_marks: vec![Mark {
                at: 0.0,
                text: "<0>".to_owned(),
            }],
            points: vec![(0.0, 0.0), (1.0, 1.0)],
        };
        let svg = plot.svg().into_string();
        assert!(svg.contains(r#"points="64.0,232.0 706.0,14.0""#), "{svg}");
        assert!(svg.contains("&lt;0&gt;"), "labels are escaped: {svg}");
    }
}
