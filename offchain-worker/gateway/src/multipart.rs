//! Forms with files (RFC 7578), as clients of OpenAI's send them: a few short fields, and a file. What is
//! given is a whole body, whose length was bounded before.

/// Longest delimiter between parts, by the RFC.
const BOUNDARY_BYTES_MAX: usize = 70;
/// Most parts.
const PARTS_MAX: usize = 16;
/// Longest head of a part.
const HEAD_BYTES_MAX: usize = 4096;

/// A part of a form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    head: &'a str,
    /// What was given.
    pub bytes: &'a [u8],
}

/// Why a body is no form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FormFault {
    #[error("send a form: Content-Type: multipart/form-data; boundary=..")]
    NoForm,
    #[error("the form's boundary is no line that can stand between its parts")]
    Boundary,
    #[error("the form breaks off")]
    Unfinished,
    #[error("a part of the form has a head that cannot be read")]
    Head,
    #[error("the form has more than {PARTS_MAX} parts")]
    TooMany,
}

/// The boundary that a `Content-Type` names.
pub(crate) fn boundary(content_type: &str) -> Result<&str, FormFault> {
    let (kind, parameters) = content_type.split_once(';').ok_or(FormFault::NoForm)?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return Err(FormFault::NoForm);
    }
    let boundary = parameter(parameters, "boundary").ok_or(FormFault::Boundary)?;
    let is_good = |byte: u8| byte.is_ascii_graphic() || byte == b' ';
    let fits = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len());
    (fits && boundary.bytes().all(is_good) && !boundary.ends_with(' '))
        .then_some(boundary)
        .ok_or(FormFault::Boundary)
}

/// The parts of a form, in their order.
pub(crate) fn parts<'a>(body: &'a [u8], boundary: &str) -> Result<Vec<Part<'a>>, FormFault> {
    let delimiter = format!("\r\n--{boundary}");
    let delimiter = delimiter.as_bytes();
    // The first stands at the beginning of a line, which may be that of the body.
    let first = delimiter.get(2..).unwrap_or_default();
    let mut rest = match body.strip_prefix(first) {
        Some(rest) => rest,
        None => split(body, delimiter).ok_or(FormFault::Unfinished)?.1,
    };
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        if parts.len() >= PARTS_MAX {
            return Err(FormFault::TooMany);
        }
        // Blanks may stand behind a delimiter, and nothing else.
        let blanks = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        let line = rest.get(blanks..).and_then(|rest| rest.strip_prefix(b"\r\n"));
        let (part, after) = split(line.ok_or(FormFault::Head)?, delimiter).ok_or(FormFault::Unfinished)?;
        parts.push(read(part)?);
        rest = after;
    }
}

fn read(part: &[u8]) -> Result<Part<'_>, FormFault> {
    let searched = part.get(..part.len().min(HEAD_BYTES_MAX)).unwrap_or_default();
    let (head, _) = split(searched, b"\r\n\r\n").ok_or(FormFault::Head)?;
    let bytes = part.get(head.len().saturating_add(4)..).unwrap_or_default();
    let head = std::str::from_utf8(head).map_err(|_| FormFault::Head)?;
    Ok(Part { head, bytes })
}

impl<'a> Part<'a> {
    /// What the form calls it.
    pub fn name(&self) -> Option<&'a str> {
        parameter(self.disposition()?, "name")
    }

    /// What the file is called, where it is one.
    pub fn filename(&self) -> Option<&'a str> {
        parameter(self.disposition()?, "filename")
    }

    fn disposition(&self) -> Option<&'a str> {
        let value = self.head.split("\r\n").find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim()
                .eq_ignore_ascii_case("content-disposition")
                .then_some(value)
        })?;
        let (kind, parameters) = value.split_once(';')?;
        kind.trim()
            .eq_ignore_ascii_case("form-data")
            .then_some(parameters)
    }
}

/// The value of a parameter, without its quotes. Browsers write a quote within as `%22`, so that a backslash
/// is one.
fn parameter<'a>(parameters: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = parameters;
    while let Some((name, after)) = rest.split_once('=') {
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(';').map_or((after, ""), |(value, _)| {
                (value, after.get(value.len()..).unwrap_or_default())
            }),
        };
        if name.trim_matches([';', ' ', '\t']).eq_ignore_ascii_case(wanted) {
            return Some(value.trim());
        }
        rest = next;
    }
    None
}

/// What stands before a delimiter, and behind it.
fn split<'a>(bytes: &'a [u8], delimiter: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes
        .windows(delimiter.len())
        .position(|window| window == delimiter)?;
    Some((bytes.get(..at)?, bytes.get(at.checked_add(delimiter.len())?..)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const FORM: &str = "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--b\r\n\
        content-disposition: form-data; name=\"file\"; filename=\"a b;c.jsonl\"\r\nContent-Type: application/jsonl\r\n\
        \r\n{}\r\n--x\r\n\r\n--b--\r\n";

    /// Name, file name and bytes.
    type Told<'a> = (Option<&'a str>, Option<&'a str>, &'a [u8]);

    fn told(body: &str) -> Result<Vec<Told<'_>>, FormFault> {
        let parts = parts(body.as_bytes(), "b")?;
        Ok(parts
            .iter()
            .map(|part| (part.name(), part.filename(), part.bytes))
            .collect())
    }

    #[test]
    fn a_form_has_its_fields_and_its_file_byte_for_byte() {
        let expected = [
            (Some("purpose"), None, b"batch".as_slice()),
            (Some("file"), Some("a b;c.jsonl"), b"{}\r\n--x\r\n".as_slice()),
        ];
        assert_eq!(told(FORM).unwrap(), expected);
        // With something before it, which nobody reads, and blanks behind its delimiters.
        let other = format!("hello\r\n{}", FORM.replace("--b\r\n", "--b \t\r\n"));
        assert_eq!(told(&other).unwrap(), expected);
        assert_eq!(told("--b--").unwrap(), []);
    }

    #[test]
    fn the_boundary_is_that_of_the_header_with_or_without_quotes() {
        for (header, expected) in [
            ("multipart/form-data; boundary=b", Ok("b")),
            ("Multipart/Form-Data;charset=utf-8; BOUNDARY=\"a b\"", Ok("a b")),
            ("multipart/form-data; boundary=b; charset=utf-8", Ok("b")),
            ("application/json", Err(FormFault::NoForm)),
            ("multipart/mixed; boundary=b", Err(FormFault::NoForm)),
            ("multipart/form-data; border=b", Err(FormFault::Boundary)),
            ("multipart/form-data; boundary=", Err(FormFault::Boundary)),
            ("multipart/form-data; boundary=\"b", Err(FormFault::Boundary)),
            ("multipart/form-data; boundary=ä", Err(FormFault::Boundary)),
        ] {
            assert_eq!(boundary(header), expected, "{header}");
        }
        let long = format!(
            "multipart/form-data; boundary={}",
            "b".repeat(BOUNDARY_BYTES_MAX + 1)
        );
        assert_eq!(boundary(&long), Err(FormFault::Boundary));
    }

    #[test]
    fn a_body_that_breaks_off_anywhere_or_is_none_is_refused() {
        for end in 0..FORM.len() - "--\r\n".len() {
            assert!(told(&FORM[..end]).is_err(), "{end}");
        }
        for (body, fault) in [
            ("", FormFault::Unfinished),
            ("--c\r\n\r\n--c--", FormFault::Unfinished),
            ("--bb\r\n\r\n\r\n--b--", FormFault::Head),
            ("--b\r\nno head at all\r\n--b--", FormFault::Head),
        ] {
            assert_eq!(told(body), Err(fault), "{body}");
        }
        let heads = format!("--b\r\nx: {}\r\n\r\n\r\n--b--", "y".repeat(HEAD_BYTES_MAX));
        assert_eq!(told(&heads), Err(FormFault::Head));
        let many = format!("{}--b--", "--b\r\n\r\n\r\n\r\n".repeat(PARTS_MAX + 1));
        assert_eq!(told(&many), Err(FormFault::TooMany));
        assert_eq!(parts(b"--b\r\n\xff\r\n\r\n\r\n--b--", "b"), Err(FormFault::Head));
    }

    #[test]
    fn a_head_that_names_nothing_names_nothing() {
        for head in [
            "",
            "content-disposition",
            "content-disposition: form-data",
            "x: form-data; name=\"a\"",
        ] {
            let body = format!("--b\r\n{head}\r\n\r\n\r\n--b--");
            assert_eq!(told(&body).unwrap(), [(None, None, b"".as_slice())], "{head}");
        }
    }
}
