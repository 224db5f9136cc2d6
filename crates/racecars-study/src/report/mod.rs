//! The report of a study: one HTML page with everything inside, that needs no network.
//!
//! A [`Digest`] gathers what the page needs while the journal is read, in bounded memory; [`page`]
//! turns it into the page. The live page is the same one: it is given new data instead of being loaded
//! anew.

mod data;
mod digest;
mod failures;
mod importance;
mod kept;
mod places;
mod regions;
mod reproduce;
mod timeline;
mod warnings;

pub use digest::Digest;
pub(crate) use digest::name;
pub(crate) use places::entries;

use crate::plan::now;
use crate::trace::not_begun;
use data::Data;
use racecars_figures::{escape, files};
use std::io;
use std::path::Path;

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/style.css");
const SCRIPTS: [&str; 5] = [
    include_str!("page/base.js"),
    include_str!("page/charts.js"),
    include_str!("page/sections.js"),
    include_str!("page/table.js"),
    include_str!("page/main.js"),
];

/// Writes the report of the study in a folder into a file.
pub fn write(folder: &Path, out: &Path) -> io::Result<()> {
    let digest = Digest::read(folder)?.ok_or_else(|| not_begun(folder))?;
    let page = page(folder, &data(folder, Some(&digest)), false);
    files::write(out, &page).map_err(io::Error::other)
}

/// The page with this data. A live page asks its server for news.
pub fn page(folder: &Path, data: &str, is_live: bool) -> String {
    let title = escape(&name(folder));
    let scripts = SCRIPTS.concat();
    // One pass, so that what one part contains is not taken for the place of another.
    let mut page = String::with_capacity(HTML.len() + STYLE.len() + scripts.len() + data.len());
    let mut rest = HTML;
    while let Some((before, after)) = rest.split_once("<!--{") {
        let Some((slot, after)) = after.split_once("}-->") else { break };
        page.push_str(before);
        page.push_str(match slot {
            "title" => &title,
            "style" => STYLE,
            "data" => data,
            "script" => &scripts,
            "live" if is_live => "live",
            _ => "",
        });
        rest = after;
    }
    page.push_str(rest);
    page
}

/// The page's data of a study, or, without a digest, of one that has not begun: as JSON that may stand in HTML and on one line.
pub fn data(folder: &Path, digest: Option<&Digest>) -> String {
    let data = Data::new(digest, &name(folder), now());
    let json = serde_json::to_string(&data).unwrap_or_else(|_| "null".to_string());
    // A `<` could end the script element; within JSON it only occurs in strings.
    json.replace('<', "\\u003c")
}
