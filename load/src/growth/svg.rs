//! SVG plot of bench costs over input size, both axes logarithmic, one line per group. A standalone file.

use maud::{Markup, PreEscaped, html};

use super::{BenchCosts, BenchGroup};

/// In user units of the SVG.
const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
/// Left margin with the cost labels.
const LEFT: f64 = 64.0;
/// Right margin with the group names.
const RIGHT: f64 = 190.0;
/// Bottom margin with the size labels.
const BELOW: f64 = 34.0;
/// Top margin.
const ABOVE: f64 = 16.0;
const NAME_HEIGHT: f64 = 18.0;

/// Okabe-Ito palette, distinguishable with colour blindness. Lines beyond the seventh reuse colours.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

const STYLE: &str = "text { font: 12px system-ui, sans-serif; fill: #57606a; }
.paper { fill: #ffffff; } .grid { stroke: #d8dee4; } polyline { fill: none; stroke-width: 2; }";

/// Range of a logarithmic axis, in powers of ten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LogAxis {
    first: i32,
    last: i32,
}

impl LogAxis {
    /// The smallest range that contains all values.
    #[allow(clippy::cast_possible_truncation)] // exponents of measured values
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| *value > 0.0)
            .map(f64::log10)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), power| {
                (low.min(power), high.max(power))
            });
        if low > high {
            return Self { first: 0, last: 1 };
        }
        let first = low.floor() as i32;
        Self {
            first,
            last: (high.ceil() as i32).max(first + 1),
        }
    }

    fn marks(self) -> impl Iterator<Item = i32> {
        self.first..=self.last
    }

    /// Position of a value on the axis, from 0 to 1.
    fn position(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn mark_position(self, power: i32) -> f64 {
        f64::from(power - self.first) / f64::from(self.last - self.first)
    }
}

/// Renders the plot as an SVG file.
#[must_use]
pub fn render_svg(bench_costs: &BenchCosts, title: &str) -> String {
    let points = || bench_costs.0.iter().flat_map(|group| &group.points);
    let (sizes, costs) = (
        LogAxis::of(points().map(|point| point.size)),
        LogAxis::of(points().map(|point| point.ns)),
    );
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.paper width=(WIDTH) height=(HEIGHT) {}
            @for power in sizes.marks() {
                @let position = format_coordinate(x(sizes.mark_position(power)));
                line.grid x1=(position) x2=(position) y1=(format_coordinate(y(0.0))) y2=(format_coordinate(y(1.0))) {}
                text x=(position) y=(format_coordinate(HEIGHT - 12.0)) text-anchor="middle" { (size_label(power)) }
            }
            @for power in costs.marks() {
                @let position = format_coordinate(y(costs.mark_position(power)));
                line.grid x1=(format_coordinate(x(0.0))) x2=(format_coordinate(x(1.0))) y1=(position) y2=(position) {}
                text x=(format_coordinate(LEFT - 6.0)) y=(format_coordinate(y(costs.mark_position(power)) + 4.0)) text-anchor="end" { (cost_label(power)) }
            }
            @for (index, group) in bench_costs.0.iter().enumerate() {
                (render_group(group, index, sizes, costs))
            }
        }
    };
    markup.into_string()
}

/// Line and legend entry of a group.
fn render_group(group: &BenchGroup, index: usize, sizes: LogAxis, costs: LogAxis) -> Markup {
    let colour = COLOURS[index % COLOURS.len()];
    let points = || {
        group
            .points
            .iter()
            .map(|point| (x(sizes.position(point.size)), y(costs.position(point.ns))))
    };
    let joined: Vec<_> = points().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let legend_y = ABOVE + NAME_HEIGHT * (index as f64 + 0.5);
    let (from, to) = (WIDTH - RIGHT + 12.0, WIDTH - RIGHT + 32.0);
    html! {
        polyline points=(joined.join(" ")) stroke=(colour) {}
        @for (x, y) in points() {
            circle cx=(format_coordinate(x)) cy=(format_coordinate(y)) r="3" fill=(colour) {}
        }
        line x1=(format_coordinate(from)) x2=(format_coordinate(to)) y1=(format_coordinate(legend_y)) y2=(format_coordinate(legend_y)) stroke=(colour) stroke-width="2" {}
        text x=(format_coordinate(to + 6.0)) y=(format_coordinate(legend_y + 4.0)) { (group.name) }
    }
}

fn x(position: f64) -> f64 {
    LEFT + position * (WIDTH - LEFT - RIGHT)
}

fn y(height: f64) -> f64 {
    HEIGHT - BELOW - height * (HEIGHT - BELOW - ABOVE)
}

fn format_coordinate(value: f64) -> String {
    format!("{value:.1}")
}

/// Label of a power of ten.
fn size_label(power: i32) -> String {
    match power {
        0..=5 => format!("{}", 10_u32.pow(power.unsigned_abs())),
        6..=8 => format!("{} million", 10_u32.pow(power.unsigned_abs() - 6)),
        _ => format!("1e{power}"),
    }
}

/// Label of a power of ten in nanoseconds.
fn cost_label(power: i32) -> String {
    match power {
        0..=2 => format!("{} ns", 10_u32.pow(power.unsigned_abs())),
        3..=5 => format!("{} µs", 10_u32.pow(power.unsigned_abs() - 3)),
        6..=8 => format!("{} ms", 10_u32.pow(power.unsigned_abs() - 6)),
        _ => format!("1e{power} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::BenchPoint;

    fn bench_costs(points: &[(f64, f64)]) -> BenchCosts {
        let points = points.iter().map(|(size, ns)| BenchPoint {
            size: *size,
            ns: *ns,
            interval_ns: (*ns, *ns),
        });
        BenchCosts(vec![BenchGroup {
            name: "a<b".to_owned(),
            points: points.collect(),
        }])
    }

    #[test]
    fn axes_enclose_all_values() {
        for (values, first, last) in [
            (vec![1.0, 100_000.0], 0, 5),
            (vec![35.0, 350.0], 1, 3),
            (vec![10.0], 1, 2),
            (vec![0.5], -1, 0),
            (vec![], 0, 1),
        ] {
            assert_eq!(
                LogAxis::of(values.clone().into_iter()),
                LogAxis { first, last },
                "{values:?}"
            );
        }
    }

    #[test]
    fn higher_cost_is_drawn_higher() {
        let svg = render_svg(&bench_costs(&[(1.0, 10.0), (100.0, 1_000.0)]), "how it <grows>");
        assert!(svg.contains(r#"points="64.0,366.0 570.0,16.0""#), "{svg}");
        assert!(
            svg.contains("a&lt;b") && svg.contains("how it &lt;grows&gt;"),
            "{svg}"
        );
        assert!(
            svg.contains(">100<") && svg.contains(">10 ns<") && svg.contains(">1 µs<"),
            "{svg}"
        );
    }
}
