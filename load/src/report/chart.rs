//! Line charts over the time of a run, as SVG for the HTML report.
//!
//! Colours are attributes of the SVG; `style.css` replaces them in the dark theme.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;

/// In user units; the page scales the SVG.
const SIZE: (u32, u32) = (880, 270);
const FONT: (&str, u32) = ("system-ui, sans-serif", 16);

/// Text, grid and lines, as in the light theme of `style.css`.
const TEXT: RGBColor = RGBColor(0x59, 0x62, 0x73);
const GRID: RGBColor = RGBColor(0xdd, 0xe1, 0xe8);
const LINES: [RGBColor; 2] = [RGBColor(0x15, 0x50, 0xb8), RGBColor(0xb4, 0x53, 0x09)];

/// Above this number of points only the line is drawn.
const MAX_DOTS: usize = 60;

/// A line of a chart: one value per window; `None` is a gap.
pub(super) struct Line {
    pub(super) name: &'static str,
    pub(super) values: Vec<Option<f64>>,
}

/// A figure with one or two lines; `y_label` names quantity and unit.
pub(super) fn chart(title: &str, y_label: &str, window_s: u64, lines: &[Line]) -> anyhow::Result<Markup> {
    let svg = draw(y_label, window_s, lines)?;
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

fn draw(y_label: &str, window_s: u64, lines: &[Line]) -> anyhow::Result<String> {
    let count = lines
        .iter()
        .map(|line| line.values.len())
        .max()
        .unwrap_or_default();
    let highest = lines
        .iter()
        .flat_map(|line| &line.values)
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    let end_s = (count as f64 * window_s as f64).max(1.0);
    // An empty chart needs a range, too.
    let top = if highest > 0.0 { highest * 1.08 } else { 1.0 };
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
    let mut chart = ChartBuilder::on(&root)
        .margin_top(8)
        .margin_right(12)
        .x_label_area_size(44)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..end_s, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style(FONT.into_font().color(&TEXT))
        .x_desc("time after the warm-up, s")
        .y_desc(y_label)
        .x_label_formatter(&|value| format_tick(*value))
        .y_label_formatter(&|value| format_tick(*value))
        .x_labels(12)
        .y_labels(6)
        .draw()?;
    for (line, color) in lines.iter().zip(LINES) {
        // Each window has its point in its middle.
        let point = |index: usize, value: f64| ((index as f64 + 0.5) * window_s as f64, value);
        let points: Vec<_> = line.values.iter().enumerate().collect();
        for segment in points.split(|(_, value)| value.is_none()) {
            let segment: Vec<_> = segment
                .iter()
                .filter_map(|(index, value)| Some(point(*index, (**value)?)))
                .collect();
            let dots = segment.iter().filter(|_| count <= MAX_DOTS);
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
            values: values.to_vec(),
        };
        let svg = draw(
            "latency, ms",
            1,
            &[line(&[Some(1.0), Some(2.0), None, Some(3.0), Some(1.0)])],
        )
        .unwrap();
        assert_eq!(svg.matches(r##"stroke="#1550B8""##).count(), 2, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 4, "{svg}");
        assert!(
            svg.contains("latency, ms") && svg.contains("time after the warm-up, s"),
            "{svg}"
        );
        let long: Vec<_> = (0..MAX_DOTS + 1).map(|_| Some(1.0)).collect();
        assert!(!draw("y", 1, &[line(&long)]).unwrap().contains("<circle"));
        draw("nothing was acknowledged", 1, &[line(&[])]).unwrap();
    }
}
