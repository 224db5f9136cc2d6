//! A journal of Optuna's `JournalStorage`, as its `JournalFileBackend` writes it: one JSON object per
//! line, each an operation. `optuna.load_study` and `optuna-dashboard` open it.
//!
//! The operations and their fields are those of `optuna/storages/journal/_storage.py`, which has kept
//! them since Optuna 3.1.

use super::moment;
use crate::journal::Event;
use crate::outcome::{Direction, Outcome, value_and_violation};
use crate::trace::{Reader, encode};
use racecars::{Domain, Scale, Space};
use serde_json::{Map, Value as Json, json};
use std::collections::HashMap;
use std::io::{self, Write};

// `JournalOperation`.
const CREATE_STUDY: u8 = 0;
const SET_STUDY_USER_ATTR: u8 = 2;
const CREATE_TRIAL: u8 = 4;
const SET_TRIAL_STATE_VALUES: u8 = 6;
const SET_TRIAL_USER_ATTR: u8 = 8;
const SET_TRIAL_SYSTEM_ATTR: u8 = 9;

// `TrialState`.
const COMPLETE: u8 = 1;
const FAIL: u8 = 3;

/// Who Optuna is told did it: no worker of its own.
const WORKER: &str = "racecars";

/// Writes the study under a name. Trials keep their numbers where these are 0, 1, 2, ...
pub(super) fn write(reader: &mut Reader, name: &str, out: &mut dyn Write) -> io::Result<u64> {
    let (plan, space) = (reader.plan().clone(), reader.space().clone());
    let direction = match plan.direction {
        Direction::Minimize => 1,
        Direction::Maximize => 2,
    };
    let mut log = |operation: u8, mut fields: Json| {
        fields["op_code"] = json!(operation);
        fields["worker_id"] = json!(WORKER);
        writeln!(out, "{fields}")
    };
    log(CREATE_STUDY, json!({ "study_name": name, "directions": [direction] }))?;
    for (key, value) in [
        ("racecars:algorithm", json!(plan.algorithm)),
        ("racecars:seed", json!(plan.seed)),
        ("racecars:command", json!(plan.command)),
        ("racecars:fixed", json!(plan.fixed)),
    ] {
        log(SET_STUDY_USER_ATTR, json!({ "study_id": 0, "user_attr": { key: value } }))?;
    }
    let mut distributions = distributions(&space);
    // A fixed parameter is a choice of one, whose index is 0.
    for (name, values) in plan.fixed.values() {
        let choice =
            json!({ "name": "CategoricalDistribution", "attributes": { "choices": [values] } });
        distributions.insert(name.clone(), Json::from(choice.to_string()));
    }
    // Optuna numbers trials as they come.
    let mut numbers: HashMap<u64, u64> = HashMap::new();
    let mut count = 0;
    reader.read(|event| match event {
        Event::Ask(ask) => {
            let (trial, params, at) = (ask.trial, ask.params, ask.at);
            let Ok(point) = encode(&space, params) else { return Ok(()) };
            if numbers.contains_key(&trial) {
                return Ok(());
            }
            numbers.insert(trial, count);
            count += 1;
            let written: Json = serde_json::from_str(params.get())?;
            let mut params = internal(&space, &point, &written);
            params.extend(plan.fixed.values().iter().map(|(name, _)| (name.clone(), json!(0.0))));
            log(
                CREATE_TRIAL,
                json!({
                    "study_id": 0, "datetime_start": moment(at), "state": 0,
                    "distributions": distributions,
                    "params": params,
                    "user_attrs": {}, "system_attrs": {}, "intermediate_values": {},
                }),
            )
        }
        Event::Tell(tell) => {
            let Some(id) = numbers.get(&tell.trial) else { return Ok(()) };
            let mut note = |key: &str, value: Json| {
                log(SET_TRIAL_USER_ATTR, json!({ "trial_id": id, "user_attr": { key: value } }))
            };
            note("seconds", json!(tell.seconds))?;
            note("worker", json!(tell.worker))?;
            if tell.attempts > 1 {
                note("attempts", json!(tell.attempts))?;
            }
            if let Outcome::Failed(failure) = &tell.outcome {
                note("failure", json!(failure.kind.name()))?;
                note("detail", json!(failure.reason))?;
            }
            if let Some(stderr) = &tell.stderr {
                note("stderr", json!(stderr))?;
            }
            let (value, violation) = value_and_violation(&tell.outcome);
            if let Some(violation) = violation {
                let attribute = json!({ "constraints": [violation] });
                log(SET_TRIAL_SYSTEM_ATTR, json!({ "trial_id": id, "system_attr": attribute }))?;
            }
            // A trial without a value cannot be complete to Optuna.
            let value = value.filter(|value| value.is_finite());
            log(
                SET_TRIAL_STATE_VALUES,
                json!({
                    "trial_id": id,
                    "state": if value.is_some() { COMPLETE } else { FAIL },
                    "values": value.map(|value| [value]),
                    "datetime_complete": moment(tell.at),
                }),
            )
        }
        _ => Ok(()),
    })?;
    Ok(count)
}

/// The distribution of each coordinate, as Optuna spells it: JSON within JSON.
fn distributions(space: &Space) -> Map<String, Json> {
    (crate::report::entries(space).enumerate())
        .map(|(i, entry)| {
            (space.coordinate_name(i), Json::from(distribution(entry.domain()).to_string()))
        })
        .collect()
}

fn distribution(domain: &Domain) -> Json {
    match domain {
        Domain::Real { low, high, scale } => json!({ "name": "FloatDistribution", "attributes":
            { "step": null, "low": low, "high": high, "log": *scale == Scale::Log } }),
        Domain::Grid { low, high, step } => json!({ "name": "FloatDistribution", "attributes":
            { "step": step, "low": low, "high": high, "log": false } }),
        Domain::Integer { low, high, scale } => json!({ "name": "IntDistribution", "attributes":
            { "step": 1, "low": low, "high": high, "log": *scale == Scale::Log } }),
        Domain::Levels(values) | Domain::Categorical(values) => {
            json!({ "name": "CategoricalDistribution", "attributes": { "choices": values } })
        }
        Domain::Boolean => {
            json!({ "name": "CategoricalDistribution", "attributes": { "choices": [false, true] } })
        }
        // `Domain` may grow; a range of numbers is the most that can be said of what is unknown.
        _ => json!({ "name": "FloatDistribution", "attributes":
            { "step": null, "low": f64::MIN, "high": f64::MAX, "log": false } }),
    }
}

/// The parameters in Optuna's inner form: numbers as themselves, the choice of a list by its index.
fn internal(space: &Space, point: &[f64], written: &Json) -> Map<String, Json> {
    let mut params = Map::new();
    for entry in space.entries() {
        for (within, i) in entry.range().enumerate() {
            let value = match entry.domain() {
                Domain::Levels(_) | Domain::Categorical(_) | Domain::Boolean => json!(point[i]),
                // As written, to the digit: decoding a logarithm would change the last one.
                _ => match &written[entry.name()] {
                    Json::Array(values) => values[within].clone(),
                    value => value.clone(),
                },
            };
            params.insert(space.coordinate_name(i), value);
        }
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_indices_and_numbers_are_as_written() {
        let space = Space::builder()
            .log_real("rate", 1e-5, 1e-1)
            .categorical("mode", ["a", "b"])
            .integers("n", 2, 1, 9)
            .build()
            .unwrap();
        let written = json!({ "rate": 0.0123456789, "mode": "b", "n": [3, 4] });
        let raw = serde_json::value::to_raw_value(&written).unwrap();
        let params = internal(&space, &encode(&space, &raw).unwrap(), &written);
        let expected = json!({ "rate": 0.0123456789, "mode": 1.0, "n[0]": 3, "n[1]": 4 });
        assert_eq!(Json::Object(params), expected);
        let text = distributions(&space)["rate"].to_string();
        assert!(text.contains(r#"\"log\":true"#), "{text}");
    }
}
