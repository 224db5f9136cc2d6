//! Known points as comma-separated values, quoted as RFC 4180 says: what `racecars export --to csv` writes, or
//! any table with a column for each parameter and one for the value.

use super::{Known, outcome};
use crate::export::ITEMS;
use crate::parameter::read_value;
use crate::point::NamedPoint;
use crate::text::Names;
use racecars::{FailureKind, Outcome, Value, Values};
use racecars_io::table::{csv_cells, split_header};

/// Reads a table. Of the columns without a use here nothing is read; rows of trials that were running are left
/// out.
pub(super) fn read(text: &str, names: Names<'_>) -> Result<Vec<Known>, String> {
    let (header, rows) = split_header(csv_cells(text)?)?;
    let columns = Columns::find(&header, names)?;
    let mut known = Vec::new();
    for (line, cells) in rows {
        let outcome = columns.outcome(&cells).map_err(|what| format!("line {line}: {what}"))?;
        known.extend(outcome.map(|outcome| Known { point: columns.point(&cells), outcome }));
    }
    Ok(known)
}

/// Which column is what.
struct Columns {
    state: Option<usize>,
    value: usize,
    violation: Option<usize>,
    detail: Option<usize>,
    /// Each parameter's column, or those of its elements.
    parameters: Vec<(String, Cells)>,
}

enum Cells {
    One(usize),
    /// The items of a subset.
    Items(usize),
    Many(Vec<usize>),
}

impl Columns {
    fn find(header: &[String], names: Names<'_>) -> Result<Columns, String> {
        // Our own exports have the outcome first and the parameters last, which may have any name.
        let first = |name: &str| header.iter().position(|column| column.trim() == name);
        let last = |name: &str| header.iter().rposition(|column| column.trim() == name);
        let value = first("value").ok_or_else(|| {
            format!(
                "the header `{}` has no column `value`; a table of known points has one for the value, one for \
                 each parameter, and commas between",
                header.join(",")
            )
        })?;
        let of = |name: &str| {
            let found = last(name).filter(|column| *column != value);
            found.ok_or_else(|| format!("the header has no column for the parameter `{name}`"))
        };
        let mut parameters = Vec::new();
        for entry in names.space.entries() {
            let name = entry.name();
            let cells = match entry.array_len() {
                Some(_) if entry.is_subset() => Cells::Items(of(name)?),
                None => Cells::One(of(name)?),
                Some(count) => {
                    let columns = (0..count).map(|i| of(&format!("{name}[{i}]")));
                    Cells::Many(columns.collect::<Result<_, String>>()?)
                }
            };
            parameters.push((name.to_string(), cells));
        }
        for (name, _) in names.fixed.values() {
            parameters.extend(of(name).ok().map(|column| (name.clone(), Cells::One(column))));
        }
        let is_free = |column: &usize| {
            parameters.iter().all(|(_, cells)| match cells {
                Cells::One(other) | Cells::Items(other) => other != column,
                Cells::Many(others) => !others.contains(column),
            })
        };
        let own = |name: &str| first(name).filter(is_free);
        let (state, violation, detail) = (own("state"), own("violation"), own("detail"));
        Ok(Columns { state, value, violation, detail, parameters })
    }

    fn point(&self, cells: &[String]) -> NamedPoint {
        let value = |column: usize| Value::Text(unguarded(cells[column].trim()).to_string());
        // Inactive parameters have empty cells.
        let is_blank = |columns: &Cells| match columns {
            Cells::One(column) => cells[*column].trim().is_empty(),
            Cells::Items(_) => false,
            Cells::Many(columns) => columns.iter().all(|column| cells[*column].trim().is_empty()),
        };
        let given = self.parameters.iter().filter(|(_, columns)| !is_blank(columns));
        let values = given.map(|(name, columns)| {
            let values = match columns {
                Cells::One(column) => Values::One(value(*column)),
                Cells::Items(column) => {
                    let items = unguarded(cells[*column].trim()).split(ITEMS);
                    let items = items.map(str::trim).filter(|item| !item.is_empty());
                    Values::Many(items.map(read_value).collect())
                }
                Cells::Many(columns) => {
                    Values::Many(columns.iter().map(|column| value(*column)).collect())
                }
            };
            (name.clone(), values)
        });
        NamedPoint::new(values.collect())
    }

    /// The outcome of a row; `None` if it was still running.
    fn outcome(&self, cells: &[String]) -> Result<Option<Outcome>, String> {
        let cell = |column: Option<usize>| column.map_or("", |column| cells[column].trim());
        let number = |name: &str, column: Option<usize>| match cell(column) {
            "" => Ok(None),
            text => text.parse::<f64>().map(Some).map_err(|_| {
                format!("`{text}` in the column `{name}` is not a number; decimals have a point")
            }),
        };
        let (value, violation) =
            (number("value", Some(self.value))?, number("violation", self.violation)?);
        match cell(self.state) {
            "running" => Ok(None),
            "" | "value" | "infeasible" => {
                Ok(Some(outcome(value, violation, None).map_err(String::from)?))
            }
            state => {
                if !FailureKind::ALL.iter().any(|kind| kind.name() == state) {
                    let kinds: Vec<&str> =
                        FailureKind::ALL.iter().map(|kind| kind.name()).collect();
                    let kinds = kinds.join(", ");
                    return Err(format!(
                        "the state `{state}` is none of value, infeasible, running, {kinds}"
                    ));
                }
                let detail = Some(unguarded(cell(self.detail))).filter(|text| !text.is_empty());
                Ok(Some(outcome(None, None, Some(detail.unwrap_or(state)))?))
            }
        }
    }
}

/// A text without the apostrophe that our exports put before what spreadsheets take for a formula.
fn unguarded(text: &str) -> &str {
    let rest = text.strip_prefix('\'');
    let is_guarded = |rest: &&str| rest.starts_with(['=', '+', '-', '@', '\t', '\r', '\n', '\'']);
    rest.filter(is_guarded).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use racecars::Space;

    fn known(text: &str) -> Result<Vec<String>, String> {
        let builder = Space::builder().real("x", 0.0, 9.0).categorical("m", ["a,b", "-c", "'d"]);
        let space = builder.reals("w", 2, 0.0, 1.0).build().unwrap();
        let fixed: NamedPoint = "y=5".parse().unwrap();
        let known = read(text, Names { space: &space, fixed: &fixed })?;
        let text = |known: &Known| serde_json::to_string(known).unwrap();
        let typed = known.into_iter().map(|known| {
            let point = known.point.without_fixed(&fixed).unwrap().of_space(&space).unwrap();
            text(&Known { point, ..known })
        });
        Ok(typed.collect())
    }

    #[test]
    fn tables_of_others_and_our_own_are_read() {
        let rows =
            known("\u{feff}w[0],w[1],m,x,loss,value\r\n0,1,\"a,b\",2.5,7,3\r\n\r\n").unwrap();
        assert_eq!(rows, [r#"{"params":{"x":2.5,"m":"a,b","w":[0.0,1.0]},"value":3.0}"#]);
        let ours = "trial,state,value,violation,detail,attempts,seconds,worker,asked,ended,x,m,w[0],w[1],y\n\
                    0,value,1.5,,,1,0.1,0,t,t,1,'-c,0,1,5\n\
                    1,infeasible,2,0.5,,1,0.1,0,t,t,1,''d,0,1,5\n\
                    2,exit,,,\"exit code 3, \"\"bad\"\"\nand so on\",1,0.1,0,t,t,1,'-c,0,1,5\n\
                    3,running,,,,,,,t,,1,'-c,0,1,5\n";
        let rows = known(ours).unwrap();
        assert_eq!(rows[0], r#"{"params":{"x":1.0,"m":"-c","w":[0.0,1.0]},"value":1.5}"#);
        assert_eq!(
            rows[1],
            r#"{"params":{"x":1.0,"m":"'d","w":[0.0,1.0]},"value":2.0,"infeasible":0.5}"#
        );
        assert!(rows[2].ends_with(r#""failed":"exit code 3, \"bad\"\nand so on"}"#), "{}", rows[2]);
        assert_eq!(rows.len(), 3);
    }

    #[test]
    fn mistakes_are_named() {
        let error = |text: &str| known(text).unwrap_err();
        assert!(error("").contains("no column `value`"));
        assert!(error("x;value\n").contains("commas between"));
        assert!(error("x,m,w[0],value\n").contains("no column for the parameter `w[1]`"));
        let row = |row: &str| error(&format!("x,m,w[0],w[1],value,state\n{row}\n"));
        assert!(row("1,-c,0,1").contains("line 2 has 4 cells, and the header has 6"));
        assert!(row("1,-c,0,1,low,").contains("line 2: `low` in the column `value`"));
        assert!(row("1,-c,0,1,,").contains("line 2: tell one of value"));
        assert!(row("1,-c,0,1,1,odd").contains("the state `odd` is none of value,"));
        assert!(row("1,\"-c").contains("the quote of line 2 is never closed"));
    }
}
