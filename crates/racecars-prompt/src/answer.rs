//! The answer to a request: what is kept of it, and how it is read from what an endpoint sends.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// No request or answer has more tokens; sums of counts up to it do not overflow.
const MAX_TOKENS: u64 = 1_000_000_000;

/// What is kept of an answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// The most probable first tokens, with the logarithms of their probabilities.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_tokens: Vec<(String, f64)>,
    /// The tokens of the prompt, if the endpoint counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// The tokens of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_tokens: Option<u64>,
}

impl Answer {
    /// Reads the body of an answer; `with_tokens`: it must have the probabilities of the first token. `Err` says
    /// what is wrong with it.
    pub(crate) fn read(body: &[u8], with_tokens: bool) -> Result<Answer, String> {
        let body: Value =
            serde_json::from_slice(body).map_err(|error| format!("it is not JSON: {error}"))?;
        if let Some(error) = body.get("error").filter(|error| !error.is_null()) {
            return Err(format!("it is an error: {error}"));
        }
        let Some(choice) = body.get("choices").and_then(|choices| choices.get(0)) else {
            return Err("it has no choices[0]".to_string());
        };
        // A chat's answer that is cut or refused may have no content.
        let text = match (choice.get("text"), choice.pointer("/message/content")) {
            (Some(Value::String(text)), _) | (_, Some(Value::String(text))) => text.clone(),
            (None, Some(Value::Null)) => String::new(),
            _ => {
                return Err(
                    "it has neither choices[0].message.content nor choices[0].text".to_string()
                );
            }
        };
        let first_tokens = match choice.get("logprobs") {
            None | Some(Value::Null) => Vec::new(),
            Some(tokens) => first_tokens(tokens)?,
        };
        if with_tokens && first_tokens.is_empty() {
            return Err("it has no choices[0].logprobs, which metric.kind = \"label-words\" needs"
                .to_string());
        }
        let usage = |name: &str| match body.get("usage").and_then(|usage| usage.get(name)) {
            None | Some(Value::Null) => Ok(None),
            Some(count) => match count.as_u64().filter(|count| *count <= MAX_TOKENS) {
                Some(count) => Ok(Some(count)),
                None => Err(format!("its usage.{name} is {count}, not a number of tokens")),
            },
        };
        let (prompt_tokens, answer_tokens) = (usage("prompt_tokens")?, usage("completion_tokens")?);
        Ok(Answer { text, first_tokens, prompt_tokens, answer_tokens })
    }
}

/// The first token's alternatives: `content[0].top_logprobs` is a list of objects in chats, and everywhere in
/// llama.cpp; `top_logprobs[0]` is an object by token in completions.
fn first_tokens(logprobs: &Value) -> Result<Vec<(String, f64)>, String> {
    let wrong = |token: &str, value: Option<&Value>| {
        let value = value.map_or("missing".to_string(), Value::to_string);
        format!("the log-probability of token {token:?} is {value}, not a number up to 0")
    };
    let read = |token: &str, value: Option<&Value>| match value.and_then(Value::as_f64) {
        // Rounding may make a sure token's a little more than 0; some endpoints have -9999 for nothing.
        Some(x) if x <= 1e-3 => Ok((token.to_string(), x.min(0.0))),
        _ => Err(wrong(token, value)),
    };
    if let Some(list) = logprobs.pointer("/content/0/top_logprobs") {
        let list = list.as_array().ok_or("logprobs.content[0].top_logprobs is not a list")?;
        return list
            .iter()
            .map(|item| {
                let token = item.get("token").and_then(Value::as_str);
                let token = token.ok_or("a token of logprobs has no text")?;
                read(token, item.get("logprob"))
            })
            .collect();
    }
    match logprobs.pointer("/top_logprobs/0") {
        Some(Value::Object(map)) => map.iter().map(|(token, x)| read(token, Some(x))).collect(),
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(_) => Err("logprobs.top_logprobs[0] is not an object".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chats_completions_and_llama_cpp_are_read() {
        let chat = br#"{"choices":[{"message":{"content":"A"},"logprobs":{"content":[{"token":"A","logprob":-0.1,
            "top_logprobs":[{"token":"A","logprob":-0.1},{"token":" B","logprob":-2}]}]}}],
            "usage":{"prompt_tokens":7,"completion_tokens":1}}"#;
        let answer = Answer::read(chat, true).unwrap();
        assert_eq!(answer.first_tokens, [("A".to_string(), -0.1), (" B".to_string(), -2.0)]);
        assert_eq!((answer.prompt_tokens, answer.answer_tokens), (Some(7), Some(1)));
        let completion =
            br#"{"choices":[{"text":" A","logprobs":{"top_logprobs":[{" A":-0.1," B":-2.0}]}}]}"#;
        let answer = Answer::read(completion, true).unwrap();
        assert_eq!((answer.text.as_str(), answer.first_tokens.len()), (" A", 2));
        let cut = br#"{"choices":[{"message":{"content":null}}]}"#;
        assert_eq!(Answer::read(cut, false).unwrap().text, "");
    }

    #[test]
    fn what_is_no_answer_is_refused_with_a_reason() {
        let with = |logprob: &str| {
            format!(
                r#"{{"choices":[{{"text":"","logprobs":{{"content":[{{"top_logprobs":[{{"token":"a","logprob":{logprob}}}]}}]}}}}]}}"#
            )
        };
        for (body, what) in [
            ("<html>".to_string(), "not JSON"),
            ("{}".to_string(), "no choices[0]"),
            (r#"{"choices":[{"text":3}]}"#.to_string(), "neither"),
            (r#"{"error":{"message":"full"}}"#.to_string(), "full"),
            (r#"{"choices":[{"text":""}]}"#.to_string(), "no choices[0].logprobs"),
            (with("NaN"), "not JSON"),
            (with("null"), "token \"a\" is null"),
            (with("3"), "token \"a\" is 3"),
            (with("\"-1\""), "not a number up to 0"),
            (with("-1").replacen('{', "{\"usage\":{\"prompt_tokens\":-4},", 1), "-4"),
            (
                with("-1").replacen('{', "{\"usage\":{\"prompt_tokens\":18446744073709551615},", 1),
                "18446744073709551615, not a number of tokens",
            ),
        ] {
            let error = Answer::read(body.as_bytes(), true).unwrap_err();
            assert!(error.contains(what), "{body}: {error}");
        }
    }
}
