//! The file of a batch: a request a line, as OpenAI has it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::record::{Endpoint, Fault};

/// Most requests of a batch, as of OpenAI's.
const LINES_MAX: usize = 50_000;
/// Faults that are told of one file.
const FAULTS_MAX: usize = 100;
/// Longest name of a request.
const ID_BYTES_MAX: usize = 512;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Its line, from 1.
    pub line: u64,
    pub custom_id: String,
    /// The same as of a request over HTTP.
    pub body: Vec<u8>,
}

pub(crate) fn fault(line: Option<u64>, code: &str, param: Option<&str>, message: impl Into<String>) -> Fault {
    Fault {
        code: code.into(),
        message: message.into(),
        param: param.map(String::from),
        line,
    }
}

/// The requests of a file. Empty lines are skipped.
///
/// # Errors
/// The first of its faults.
pub(crate) fn read(file: &[u8], endpoint: Endpoint) -> Result<Vec<Asked>, Vec<Fault>> {
    let text = std::str::from_utf8(file).map_err(|error| {
        let told = format!("the file is not UTF-8 from byte {} on", error.valid_up_to());
        vec![fault(None, "invalid_file", None, told)]
    })?;
    let (mut asked, mut faults, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
    // Some programs begin their files with it.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        if asked.len() >= LINES_MAX {
            let told = format!("a batch has {LINES_MAX} requests at most: cut the file into several");
            faults.push(fault(Some(line), "too_many_requests", None, told));
            break;
        }
        match request(line, text, endpoint) {
            Ok(request) if known.insert(request.custom_id.clone()) => asked.push(request),
            Ok(request) => {
                let told = format!(
                    "there is another request of the custom_id {:?}",
                    request.custom_id
                );
                faults.push(fault(Some(line), "duplicate_custom_id", Some("custom_id"), told));
            }
            Err(fault) => faults.push(fault),
        }
        if faults.len() >= FAULTS_MAX {
            break;
        }
    }
    if asked.is_empty() && faults.is_empty() {
        faults.push(fault(None, "empty_file", None, "there is no request in the file"));
    }
    match faults.is_empty() {
        true => Ok(asked),
        false => Err(faults),
    }
}

fn request(line: u64, text: &str, endpoint: Endpoint) -> Result<Asked, Fault> {
    let wrong = |code, param, told: String| fault(Some(line), code, param, told);
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else {
        let told = "this line is no JSON object".to_owned();
        return Err(wrong("invalid_json_line", None, told));
    };
    let mut text = |name: &'static str| match fields.remove(name) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(wrong(
            "missing_required_parameter",
            Some(name),
            format!("{name} is missing, or no text"),
        )),
    };
    let custom_id = text("custom_id")?;
    if custom_id.is_empty() || custom_id.len() > ID_BYTES_MAX {
        let told = format!("custom_id has to have between 1 and {ID_BYTES_MAX} bytes");
        return Err(wrong("invalid_custom_id", Some("custom_id"), told));
    }
    let method = text("method")?;
    if method != "POST" {
        let told = format!("method has to be \"POST\", not {method:?}");
        return Err(wrong("invalid_method", Some("method"), told));
    }
    let url = text("url")?;
    if url != endpoint.path() {
        let told = format!(
            "url has to be {:?}, the batch's endpoint, not {url:?}",
            endpoint.path()
        );
        return Err(wrong("invalid_url", Some("url"), told));
    }
    let Some(Value::Object(body)) = fields.remove("body") else {
        let told = "body is missing, or no JSON object".to_owned();
        return Err(wrong("missing_required_parameter", Some("body"), told));
    };
    let body = Value::Object(body).to_string().into_bytes();
    Ok(Asked {
        line,
        custom_id,
        body,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(id: &str) -> String {
        let body = json!({"model": "m", "input": "a"});
        json!({"custom_id": id, "method": "POST", "url": "/v1/embeddings", "body": body}).to_string()
    }

    fn codes(file: &str) -> Vec<(String, Option<u64>)> {
        let faults = read(file.as_bytes(), Endpoint::Embeddings).unwrap_err();
        faults.into_iter().map(|fault| (fault.code, fault.line)).collect()
    }

    #[test]
    fn a_file_is_read_line_by_line_whatever_ends_them() {
        let file = format!("\u{feff}{}\r\n\n  \n{}", line("a"), line("b"));
        let asked = read(file.as_bytes(), Endpoint::Embeddings).unwrap();
        let told: Vec<_> = asked
            .iter()
            .map(|asked| (asked.line, asked.custom_id.as_str()))
            .collect();
        assert_eq!(told, [(1, "a"), (4, "b")]);
        let body: Value = serde_json::from_slice(&asked[0].body).unwrap();
        assert_eq!(body["input"], "a");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let of = |name: &str, value: Value| {
            let mut line: Value = serde_json::from_str(&line("x")).unwrap();
            line[name] = value;
            line.to_string()
        };
        for (wrong, code) in [
            ("nonsense".to_owned(), "invalid_json_line"),
            ("[]".to_owned(), "invalid_json_line"),
            (of("custom_id", json!(7)), "missing_required_parameter"),
            (of("custom_id", json!("")), "invalid_custom_id"),
            (of("custom_id", json!("x".repeat(513))), "invalid_custom_id"),
            (of("method", json!("GET")), "invalid_method"),
            (of("url", json!("/v1/completions")), "invalid_url"),
            (of("body", json!("{}")), "missing_required_parameter"),
            (line("a"), "duplicate_custom_id"),
        ] {
            let file = format!("{}\n{wrong}\n{}", line("a"), line("b"));
            assert_eq!(codes(&file), [(code.to_owned(), Some(2))], "{wrong}");
        }
        assert_eq!(codes(" \n"), [("empty_file".to_owned(), None)]);
        let told = read(b"a\xff", Endpoint::Embeddings).unwrap_err();
        assert_eq!(told[0].code, "invalid_file");
    }

    #[test]
    fn neither_requests_nor_faults_are_without_bound() {
        let many: String = (0..=LINES_MAX).map(|id| line(&id.to_string()) + "\n").collect();
        assert_eq!(codes(&many), [("too_many_requests".to_owned(), Some(50_001))]);
        assert_eq!(codes(&"x\n".repeat(1000)).len(), FAULTS_MAX);
    }
}
