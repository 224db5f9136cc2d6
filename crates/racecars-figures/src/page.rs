//! The page of the paper's experiments: one HTML file without references to other files, assembled from
//! sections. Commands of different crates add their own sections.

use crate::files::{self, FileError};
use std::path::{Path, PathBuf};

const TITLE: &str = "RACE-CARS: the paper's experiments reproduced";
const STYLE: &str = "\
body{font:16px/1.5 system-ui,'Helvetica Neue',Arial,sans-serif;color:#222;max-width:72rem;\
margin:2rem auto;padding:0 1rem}\
h1,h2,h3{line-height:1.2}h2{margin-top:3rem;border-top:1px solid #ddd;padding-top:1.5rem}\
table{border-collapse:collapse;margin:.7rem 0;font-size:.9rem}\
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #e8e8e8;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}thead th{border-bottom:1px solid #888}\
td.words{white-space:normal;text-align:left}\
figure{margin:1rem 0;overflow-x:auto}svg{max-width:100%;height:auto}\
.verdict{display:inline-block;padding:0 .5rem;border-radius:.7rem;font-size:.85rem;\
white-space:nowrap;border:1px solid}\
.holds{color:#00543c;border-color:#009e73;background:#e8f6f1}\
.in-part{color:#6b4a00;border-color:#e69f00;background:#fdf4e0}\
.fails{color:#7d2d00;border-color:#d55e00;background:#fbeade}\
.untested{color:#444;border-color:#999;background:#f2f2f2}\
.note{background:#f6f6f6;border-left:4px solid #888;padding:.5rem 1rem}\
.quick{background:#fdf4e0;border-left-color:#e69f00}\
.best{font-weight:600}code{background:#f2f2f2;padding:.1rem .3rem}\
details{margin:.7rem 0}summary{cursor:pointer}";

/// Saves a section of the page as HTML, replacing the section of the same name, and writes the page
/// from all sections in the directory, sorted by name. Returns the path of the page.
pub fn save_section(directory: &Path, name: &str, html: &str) -> Result<PathBuf, FileError> {
    let folder = directory.join("sections");
    files::create_directory(&folder)?;
    files::write(&folder.join(format!("{name}.html")), html)?;
    let mut sections = Vec::new();
    let failed = |source| FileError::reading(&folder, source);
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "html") {
            sections.push(path);
        }
    }
    sections.sort();
    let mut body = String::new();
    for path in &sections {
        let failed = |source| FileError::reading(path, source);
        body += &std::fs::read_to_string(path).map_err(failed)?;
    }
    let page = directory.join("report.html");
    files::write(&page, &document(&body))?;
    Ok(page)
}

fn document(body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{TITLE}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{TITLE}</h1>\n{body}\
         </body>\n</html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_newest_of_each_section_sorted_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let save = |name: &str, html: &str| save_section(directory.path(), name, html).unwrap();
        save("2-other", "<h2>First</h2>\n");
        save("1-own", "<h2>Own</h2>\n");
        let path = save("2-other", "<h2>Second</h2>\n");
        assert_eq!(path, directory.path().join("report.html"));
        let page = std::fs::read_to_string(path).unwrap();
        assert!(page.contains("<h1>RACE-CARS") && !page.contains("First"));
        assert!(page.find("Own").unwrap() < page.find("Second").unwrap());
    }
}
