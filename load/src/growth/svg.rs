//! How is growth drawn? Costs over sizes, both by powers of ten, a line a group: a file of its own that any page can show.

use maud::{Markup, PreEscaped, html};

use super::{BenchGroup, BenchCosts};

/// Width of the drawing, in its own units.
const WIDTH: f64 = 760.0;
/// Height of the drawing.
const HEIGHT: f64 = 400.0;
/// Room for the costs at the left.
const LEFT: f64 = 64.0;
/// Room for the names at the right.
const RIGHT: f64 = 190.0;
/// Room for the sizes below.
const BELOW: f64 = 34.0;
/// Room above.
const ABOVE: f64 = 16.0;
/// From one name to the next.
const NAME_HEIGHT: f64 = 18.0;

/// Colours that are told apart by those who see fewer of them, too (Okabe and Ito); more lines than colours begin again.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
];

const STYLE: &str = "text { font: 12px system-ui, sans-serif; fill: #57606a; }
.paper { fill: #ffffff; } .grid { stroke: #d8dee4; } polyline { fill: none; stroke-width: 2; }";

/// From which power of ten to which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    /// So that all of the values lie within.
    #[allow(clippy::cast_possible_truncation)] // powers of ten of what was measured
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

    /// Where a value lies, from 0 to 1.
    fn at(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }

    fn at_mark(self, power: i32) -> f64 {
        f64::from(power - self.first) / f64::from(self.last - self.first)
    }
}

/// The drawing, as an SVG file.
#[must_use]
pub fn render_svg(growth: &BenchCosts, title: &str) -> String {
    let points = || growth.0.iter().flat_map(|group| &group.points);
    let (sizes, costs) = (
        Decades::of(points().map(|point| point.size)),
        Decades::of(points().map(|point| point.ns)),
    );
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            title { (title) }
            style { (PreEscaped(STYLE)) }
            rect.paper width=(WIDTH) height=(HEIGHT) {}
            @for power in sizes.marks() {
                @let at = number(x(sizes.at_mark(power)));
                line.grid x1=(at) x2=(at) y1=(number(y(0.0))) y2=(number(y(1.0))) {}
                text x=(at) y=(number(HEIGHT - 12.0)) text-anchor="middle" { (size(power)) }
            }
            @for power in costs.marks() {
                @let at = number(y(costs.at_mark(power)));
                line.grid x1=(number(x(0.0))) x2=(number(x(1.0))) y1=(at) y2=(at) {}
                text x=(number(LEFT - 6.0)) y=(number(y(costs.at_mark(power)) + 4.0)) text-anchor="end" { (cost(power)) }
            }
            @for (index, group) in growth.0.iter().enumerate() {
                (line(group, index, sizes, costs))
            }
        }
    };
    markup.into_string()
}

/// A group's line, and its name beside the drawing.
fn line(group: &BenchGroup, index: usize, sizes: Decades, costs: Decades) -> Markup {
    let colour = COLOURS[index % COLOURS.len()];
    let points = || {
        group
            .points
            .iter()
            .map(|point| (x(sizes.at(point.size)), y(costs.at(point.ns))))
    };
    let joined: Vec<_> = points().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let name = ABOVE + NAME_HEIGHT * (index as f64 + 0.5);
    let (from, to) = (WIDTH - RIGHT + 12.0, WIDTH - RIGHT + 32.0);
    html! {
        polyline points=(joined.join(" ")) stroke=(colour) {}
        @for (x, y) in points() {
            circle cx=(number(x)) cy=(number(y)) r="3" fill=(colour) {}
        }
        line x1=(number(from)) x2=(number(to)) y1=(number(name)) y2=(number(name)) stroke=(colour) stroke-width="2" {}
        text x=(number(to + 6.0)) y=(number(name + 4.0)) { (group.name) }
    }
}

fn x(at: f64) -> f64 {
    LEFT + at * (WIDTH - LEFT - RIGHT)
}

fn y(height: f64) -> f64 {
    HEIGHT - BELOW - height * (HEIGHT - BELOW - ABOVE)
}

fn number(value: f64) -> String {
    format!("{value:.1}")
}

/// A size that is a power of ten.
fn size(power: i32) -> String {
    match power {
        0..=5 => format!("{}", 10_u32.pow(power.unsigned_abs())),
        6..=8 => format!("{} million", 10_u32.pow(power.unsigned_abs() - 6)),
        _ => format!("1e{power}"),
    }
}

/// A cost of a power of ten of nanoseconds.
fn cost(power: i32) -> String {
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

    fn growth(points: &[(f64, f64)]) -> BenchCosts {
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
    fn axes_reach_around_what_is_drawn() {
        for (values, first, last) in [
            (vec![1.0, 100_000.0], 0, 5),
            (vec![35.0, 350.0], 1, 3),
            (vec![10.0], 1, 2),
            (vec![0.5], -1, 0),
            (vec![], 0, 1),
        ] {
            assert_eq!(
                Decades::of(values.clone().into_iter()),
                Decades { first, last },
                "{values:?}"
            );
        }
    }

    #[test]
    fn what_costs_more_is_drawn_higher() {
        let svg = render_svg(&growth(&[(1.0, 10.0), (100.0, 1_000.0)]), "how it <grows>");
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
