//! The elements of an SVG drawing.

use std::fmt::Write;

/// A drawing of a fixed size, to which elements are added.
#[derive(Debug, Clone)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Text with the special characters of XML escaped.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

impl Svg {
    /// An empty drawing.
    pub fn new(width: f64, height: f64) -> Self {
        Svg { width, height, body: String::new() }
    }

    /// The width in pixels.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// The height in pixels.
    pub fn height(&self) -> f64 {
        self.height
    }

    /// The drawing as a file.
    pub fn to_file(&self) -> String {
        self.with_attributes(r#" xmlns="http://www.w3.org/2000/svg""#)
    }

    /// The drawing as part of an HTML page, where no namespace is needed.
    pub fn to_inline(&self) -> String {
        self.with_attributes(r#" role="img""#)
    }

    fn with_attributes(&self, attributes: &str) -> String {
        let Svg { width, height, body } = self;
        format!(
            "<svg{attributes} viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             font-family=\"system-ui, 'Helvetica Neue', Arial, sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{body}</svg>\n"
        )
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.body.write_fmt(element);
        self.body.push('\n');
    }

    /// Adds another drawing with its top left corner at (x, y).
    pub fn place(&mut self, x: f64, y: f64, drawing: &Svg) {
        self.add(format_args!("<g transform=\"translate({x} {y})\">\n{}</g>", drawing.body));
    }

    /// A straight line.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), color: &str, width: f64) {
        self.add(format_args!(
            r#"<line x1="{:.1}" y1="{:.1}" x2="{:.1}" y2="{:.1}" stroke="{color}" stroke-width="{width}"/>"#,
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line through points; `dash` is a pattern such as `6 3`, or empty.
    pub fn polyline(&mut self, points: &[(f64, f64)], color: &str, width: f64, dash: &str) {
        let dash = match dash {
            "" => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        self.add(format_args!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\" stroke-linecap=\"round\"{dash}/>",
            list(points)
        ));
    }

    /// A filled shape.
    pub fn polygon(&mut self, points: &[(f64, f64)], color: &str, opacity: f64) {
        self.add(format_args!(
            "<polygon points=\"{}\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>",
            list(points)
        ));
    }

    /// A filled rectangle.
    pub fn rectangle(&mut self, corner: (f64, f64), size: (f64, f64), color: &str) {
        self.add(format_args!(
            r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{color}" shape-rendering="crispEdges"/>"#,
            corner.0, corner.1, size.0, size.1
        ));
    }

    /// A filled circle.
    pub fn dot(&mut self, at: (f64, f64), radius: f64, color: &str) {
        let (x, y) = at;
        self.add(format_args!(r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius}" fill="{color}"/>"#));
    }

    /// Text at (x, y); [`SvgText::draw`] adds it.
    #[must_use = "text is not there until `draw` is called"]
    pub fn text<'a>(&'a mut self, x: f64, y: f64, text: &'a str) -> SvgText<'a> {
        let (anchor, color) = ("start", crate::INK);
        SvgText {
            svg: self,
            x,
            y,
            text,
            anchor,
            size: 12.0,
            color,
            is_bold: false,
            is_upright: false,
        }
    }
}

fn list(points: &[(f64, f64)]) -> String {
    let mut list = String::with_capacity(12 * points.len());
    for (x, y) in points {
        let _ = write!(list, "{x:.1},{y:.1} ");
    }
    list.truncate(list.trim_end().len());
    list
}

/// Text that is not drawn yet. By default 12 pixels high and left-aligned.
#[derive(Debug)]
pub struct SvgText<'a> {
    svg: &'a mut Svg,
    x: f64,
    y: f64,
    text: &'a str,
    anchor: &'static str,
    size: f64,
    color: &'a str,
    is_bold: bool,
    is_upright: bool,
}

impl<'a> SvgText<'a> {
    /// Centred on x.
    pub fn centered(mut self) -> Self {
        self.anchor = "middle";
        self
    }

    /// Ending at x.
    pub fn flush_right(mut self) -> Self {
        self.anchor = "end";
        self
    }

    /// In bold.
    pub fn bold(mut self) -> Self {
        self.is_bold = true;
        self
    }

    /// Of this height.
    pub fn size(mut self, size: f64) -> Self {
        self.size = size;
        self
    }

    /// In this colour.
    pub fn color(mut self, color: &'a str) -> Self {
        self.color = color;
        self
    }

    /// Running upwards.
    pub fn upright(mut self) -> Self {
        self.is_upright = true;
        self
    }

    /// Adds it to the drawing.
    pub fn draw(self) {
        let SvgText { svg, x, y, text, anchor, size, color, is_bold, is_upright } = self;
        let weight = if is_bold { " font-weight=\"600\"" } else { "" };
        let turn = if is_upright {
            format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"")
        } else {
            "".into()
        };
        svg.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{color}\" \
             text-anchor=\"{anchor}\"{weight}{turn}>{}</text>",
            escape(text)
        ));
    }
}
