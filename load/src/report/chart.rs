//! Line charts over the time of a run and over percentiles, as SVG for the HTML report.
//!
//! Colours are attributes of the SVG; `style.css` replaces them in the dark theme.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

/// User units; the page scales the SVG.
const SIZE: (u32, u32) = (880, 270);
const FONT: (&str, u32) = ("system-ui, sans-serif", 16);

/// Text, grid and lines, as in the light theme of `style.css`.
const TEXT: RGBColor = RGBColor(0x59, 0x62, 0x73);
const GRID: RGBColor = RGBColor(0xdd, 0xe1, 0xe8);
const LINES: [RGBColor; 3] = [
    RGBColor(0x15, 0x50, 0xb8),
    RGBColor(0xb4, 0x53, 0x09),
    RGBColor(0x0a, 0x6b, 0x3d),
];

/// Above this number of points only the line is drawn.
const MAX_DOTS: usize = 60;

/// A line of a chart through points; one without a value is a gap.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

/// The horizontal axis.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    /// Seconds after the warm-up.
    Time,
    /// Number of nines: 1 is p90, 2 is p99.
    Percentile,
}

impl Axis {
    fn label(self) -> &'static str {
        match self {
            Self::Time => "time after the warm-up, s",
            Self::Percentile => "percentile",
        }
    }

    /// All charts over time end with the last second.
    fn end(self, last: f64) -> f64 {
        match self {
            Self::Time => last.ceil(),
            Self::Percentile => last,
        }
    }

    fn format(self, value: f64) -> String {
        match self {
            Self::Time => format_tick(value),
            Self::Percentile if value.fract() == 0.0 => format!("{} %", 100.0 - 10_f64.powf(2.0 - value)),
            Self::Percentile => String::new(),
        }
    }
}

/// A figure with one to three lines; `y_label` names quantity and unit.
pub(super) fn chart(title: &str, axis: Axis, y_label: &str, lines: &[Line]) -> anyhow::Result<Markup> {
    let svg = draw(axis, y_label, lines)?;
    Ok(html! {
        figure {
            figcaption {
                (title)
                @for (index, line) in lines.iter().enumerate().filter(|_| lines.len() > 1) {
                    span.key { i class=(format!("line{index}")) {} (line.name) }
                }
            }
            div.chart role="img" tabindex="0" aria-label=(format!("{title}: {y_label}")) { (PreEscaped(svg)) }
        }
    })
}

fn draw(axis: Axis, y_label: &str, lines: &[Line]) -> anyhow::Result<String> {
    let all = || lines.iter().flat_map(|line| &line.points);
    let highest = all().filter_map(|(_, value)| *value).fold(0.0, f64::max);
    let end = axis.end(all().map(|(at, _)| *at).fold(1.0, f64::max));
    let count = lines.iter().map(|line| line.points.len()).max();
    let has_dots = count.is_some_and(|count| count <= MAX_DOTS);
    // An empty chart needs a range, too.
    let top = if highest > 0.0 { highest * 1.08 } else { 1.0 };
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(8)
        .margin_right(24)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..end, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style(FONT.into_font().color(&TEXT))
        .x_desc(axis.label())
        .y_desc(y_label)
        .x_label_formatter(&|value| axis.format(*value))
        .y_label_formatter(&|value| format_tick(*value))
        .x_labels(12)
        .y_labels(6)
        .draw()?;
    for (line, color) in lines.iter().zip(LINES) {
        for segment in line.points.split(|(_, value)| value.is_none()) {
            let segment: Vec<_> = segment
                .iter()
                .filter_map(|(at, value)| Some((*at, (*value)?)))
                .collect();
            // A single point has no line.
            let dots = segment.iter().filter(|_| has_dots || segment.len() == 1);
            chart.draw_series(dots.map(|at| Circle::new(*at, 3, color.filled())))?;
            chart.draw_series(LineSeries::new(segment, color.stroke_width(2)))?;
        }
    }
    root.present()?;
    drop(chart);
    drop(root);
    Ok(svg)
}

/// `12,000`, `2.5` or `0.25`.
fn format_tick(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    let (whole, decimals) = text
        .split_once('.')
        .map_or((text, None), |(whole, decimals)| (whole, Some(decimals)));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    match decimals {
        Some(decimals) => format!("{grouped}.{decimals}"),
        None => grouped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short_and_grouped() {
        for (value, text) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (2.5, "2.5"),
            (900.0, "900"),
            (12_000.0, "12,000"),
            (1_234_567.0, "1,234,567"),
        ] {
            assert_eq!(format_tick(value), text);
        }
    }

    #[test]
    fn gap_splits_a_line_and_axes_have_units() {
        let line = |values: &[Option<f64>]| Line {
            name: "p99",
            points: (0..).map(f64::from).zip(values.iter().copied()).collect(),
        };
        let values = [Some(1.0), Some(2.0), None, Some(3.0), Some(1.0), None, Some(2.0)];
        let svg = draw(Axis::Time, "latency, ms", &[line(&values)]).unwrap();
        assert_eq!(svg.matches(r##"stroke="#1550B8""##).count(), 3, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 5, "{svg}");
        assert!(
            svg.contains("latency, ms") && svg.contains("time after the warm-up, s"),
            "{svg}"
        );
        let long: Vec<_> = (0..MAX_DOTS + 1).map(|_| Some(1.0)).collect();
        assert!(!draw(Axis::Time, "y", &[line(&long)]).unwrap().contains("<circle"));
        draw(Axis::Time, "nothing was acknowledged", &[line(&[])]).unwrap();
        let nines = [0, 1, 2, 3].map(|nines| Axis::Percentile.format(f64::from(nines)));
        assert_eq!(nines, ["0 %", "90 %", "99 %", "99.9 %"]);
    }
}
