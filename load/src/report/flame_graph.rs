//! Flame graph of sampled stacks, as an SVG image.
//!
//! The libraries for it have licences that `deny.toml` does not admit.

use std::collections::BTreeMap;

use maud::{Markup, html};

/// User units; the viewer scales the image.
const WIDTH: f64 = 1_200.0;
const ROW: f64 = 16.0;

/// Narrower frames would not be seen, nor would their callees.
const MIN_WIDTH: f64 = 0.3;

/// Width of a character of the font.
const CHARACTER: f64 = 6.6;

/// A function with its callees, or a thread with its functions.
#[derive(Default)]
struct Frame {
    samples: u64,
    callees: BTreeMap<String, Self>,
}

impl Frame {
    /// The tree of the lines `ROOT;THREAD;FUNCTION;… SAMPLES`.
    fn of(stacks: &str) -> Self {
        let mut root = Self::default();
        for line in stacks.lines() {
            let Some((stack, samples)) = line.rsplit_once(' ') else {
                continue;
            };
            let samples: u64 = samples.parse().unwrap_or_default();
            let mut frame = &mut root;
            frame.samples += samples;
            for name in stack.split(';') {
                frame = frame.callees.entry(name.to_owned()).or_default();
                frame.samples += samples;
            }
        }
        root
    }

    fn height(&self) -> usize {
        let callees = self.callees.values().map(|callee| 1 + callee.height());
        callees.max().unwrap_or_default()
    }

    /// Draws the callees from `x` on, `unit` wide per sample, in a row below this frame's.
    fn draw_callees(&self, x: f64, row: usize, unit: f64) -> Markup {
        let mut x = x;
        html! {
            @for (name, callee) in &self.callees {
                @let width = callee.samples as f64 * unit;
                @let end = x + width;
                @let left = std::mem::replace(&mut x, end);
                @if width >= MIN_WIDTH {
                    g {
                        title { (name) ": " (callee.samples) " samples, " (format!("{:.2} %", width / WIDTH * 100.0)) }
                        rect x=(format!("{left:.1}")) y=(row as f64 * ROW) width=(format!("{width:.1}")) height=(ROW - 1.0)
                            fill=(color(name)) {}
                        text x=(format!("{:.1}", left + 3.0)) y=(row as f64 * ROW + 12.0) { (fitting(name, width)) }
                    }
                    (callee.draw_callees(left, row + 1, unit))
                }
            }
        }
    }
}

/// Draws folded stacks: callees stand below their callers, as wide as their samples. The pointer shows a
/// frame's name and share.
#[must_use]
pub fn draw_flame_graph(stacks: &str) -> String {
    let root = Frame::of(stacks);
    let height = root.height().max(1) as f64 * ROW;
    let image = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {WIDTH} {height}")) font-family="monospace" font-size="11" {
            (root.draw_callees(0.0, 0, WIDTH / root.samples.max(1) as f64))
        }
    };
    image.into_string()
}

/// What fits of a name.
fn fitting(name: &str, width: f64) -> String {
    let places = (1_u32..).map(|place| f64::from(place) * CHARACTER);
    let fitting = name.chars().zip(places).take_while(|(_, end)| *end <= width);
    fitting.map(|(character, _)| character).collect()
}

/// A warm color, the same for the same name.
fn color(name: &str) -> String {
    let hash = name.bytes().fold(0_u32, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(u32::from(byte))
    });
    format!("hsl({} 80% 70%)", hash % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_is_as_wide_as_its_samples_and_names_them() {
        let image = draw_flame_graph("hot-sku;lane-0;commit<T> 3\nhot-sku;lane-0;encode 1\n");
        assert!(
            image.contains("<title>commit&lt;T&gt;: 3 samples, 75.00 %</title>"),
            "{image}"
        );
        assert!(image.contains(r#"x="900.0" y="32" width="300.0""#), "{image}");
        // A viewer of images reads XML: each element is closed.
        for element in ["svg", "g", "title", "rect", "text"] {
            let count = |tag: String| image.matches(&tag).count();
            let opened = count(format!("<{element} ")) + count(format!("<{element}>"));
            assert_eq!(opened, count(format!("</{element}>")), "{element}: {image}");
        }
    }

    #[test]
    fn callees_of_a_frame_too_narrow_to_be_seen_are_left_out() {
        let image = draw_flame_graph("r;wide 100000\nr;narrow;callee 1\n");
        assert!(image.contains("wide") && !image.contains("narrow") && !image.contains("callee"));
        assert!(draw_flame_graph("").starts_with("<svg "));
    }
}
