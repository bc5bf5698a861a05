//! A model hub that behaves as it is told.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use surety_models::ModelFiles;

/// What the server does with one request for a file.
#[derive(Clone, Copy)]
pub enum Act {
    /// As it should.
    Serve,
    /// Announces all, sends so many bytes, and hangs up.
    DropAfter(usize),
    /// Sends the whole file whatever range was asked for.
    IgnoreRange,
    /// Sends other bytes of the same number.
    Lie,
    /// Announces and sends more than there is.
    Bloat,
    /// Refuses.
    Status(u16),
}

/// Requests seen: the file's path, and the first byte asked for.
pub type Seen = Arc<Mutex<Vec<(String, usize)>>>;

/// Serves the weights by `script`, one act a request and the last for ever, and everything else as it is.
pub fn serve(files: ModelFiles, script: &[Act]) -> (String, Seen) {
    serve_beside(files, &[], script)
}

/// The same with further files, by their paths.
pub fn serve_beside(files: ModelFiles, others: &[(&str, &str)], script: &[Act]) -> (String, Seen) {
    let others: BTreeMap<String, Vec<u8>> = others
        .iter()
        .map(|(path, text)| (path.to_string(), text.as_bytes().to_vec()))
        .collect();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Seen::default();
    let (log, mut script) = (seen.clone(), script.to_vec());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(Request { head, name, start }) = read_request(&stream) else {
                continue;
            };
            let content = content(&files, &name).or(others.get(&name).map(Vec::as_slice));
            if head {
                let status = if content.is_some() { 200 } else { 404 };
                let length = content.unwrap_or_default().len();
                write!(
                    stream,
                    "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                )
                .ok();
                continue;
            }
            log.lock().unwrap().push((name.clone(), start));
            let act = match &name[..] {
                "model.safetensors" if script.len() > 1 => script.remove(0),
                "model.safetensors" => script[0],
                _ => Act::Serve,
            };
            // The client may hang up first.
            answer(&mut stream, content.unwrap_or_default(), start, act).ok();
        }
    });
    (url, seen)
}

fn content<'a>(files: &'a ModelFiles, name: &str) -> Option<&'a [u8]> {
    match name {
        "config.json" => Some(&files.config),
        "tokenizer.json" => Some(&files.tokenizer),
        "model.safetensors" => Some(&files.weights),
        _ => None,
    }
}

struct Request {
    /// Only the headers are asked for.
    head: bool,
    name: String,
    start: usize,
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next()?;
    let path = first.split(' ').nth(1)?.to_owned();
    let name = path.strip_prefix("/owner/tiny/resolve/main/");
    let name = name.unwrap_or_else(|| panic!("{path}")).to_owned();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let range = headers.iter().find_map(|line| {
        let line = line.to_ascii_lowercase();
        let start = line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse();
        Some(start.unwrap())
    });
    Some(Request {
        head: first.starts_with("HEAD "),
        name,
        start: range.unwrap_or(0),
    })
}

fn answer(stream: &mut TcpStream, content: &[u8], start: usize, act: Act) -> std::io::Result<()> {
    let total = content.len();
    let (start, mut body) = match act {
        Act::IgnoreRange => (0, content.to_vec()),
        Act::Lie => (start, vec![b'!'; total - start]),
        Act::Bloat => (0, [content, content].concat()),
        _ => (start, content[start..].to_vec()),
    };
    let (status, range) = match act {
        Act::Status(status) => (status, String::new()),
        _ if start == 0 => (200, String::new()),
        _ => (
            206,
            format!("Content-Range: bytes {start}-{}/{total}\r\n", total - 1),
        ),
    };
    let length = body.len();
    if let Act::DropAfter(sent) = act {
        body.truncate(sent);
    }
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{range}Connection: close\r\n\r\n"
    )?;
    stream.write_all(&body)
}
