//! A model hub that behaves as it is told.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use surety_model_fetch::FileHash;
use surety_models::ModelFiles;

/// The commit that `main` is.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What the server does with one request for the bytes of weights.
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

/// Requests for bytes: the file's path, and the first byte asked for.
pub type Seen = Arc<Mutex<Vec<(String, usize)>>>;

/// Serves the weights by `script`, one act a request and the last for ever, and everything else as it is.
pub fn serve(files: ModelFiles, script: &[Act]) -> (String, Seen) {
    serve_beside(files, &[], script)
}

/// The same with further files, by their paths.
pub fn serve_beside(files: ModelFiles, others: &[(&str, &str)], script: &[Act]) -> (String, Seen) {
    let mut hub = MockHub::new(files).script(script);
    for (path, text) in others {
        hub = hub.with(path, text.as_bytes());
    }
    let running = hub.start();
    (running.url, running.seen)
}

/// What a hub has as `owner/tiny`, and how it answers.
pub struct MockHub {
    files: BTreeMap<String, Vec<u8>>,
    script: VecDeque<Act>,
    commit: String,
    /// Without it nothing is given.
    token: Option<&'static str>,
    /// Large files are kept by another host.
    is_elsewhere: bool,
    /// The repository has another name now.
    is_renamed: bool,
    /// Headers that are said in place of the right ones, or left out, for files of these names.
    says: Vec<(String, &'static str, Option<String>)>,
}

/// A hub that serves.
pub struct Running {
    pub url: String,
    pub seen: Seen,
    /// Every request to the hub.
    pub asked: Asked,
    /// Every request to the host that it redirects to.
    pub asked_elsewhere: Asked,
}

pub type Asked = Arc<Mutex<Vec<Request>>>;

impl MockHub {
    pub fn new(files: ModelFiles) -> Self {
        let named = [
            ("config.json", files.config),
            ("tokenizer.json", files.tokenizer),
            ("model.safetensors", files.weights.into_memory().unwrap()),
        ];
        Self {
            files: named.map(|(name, bytes)| (name.to_owned(), bytes)).into(),
            script: [Act::Serve].into(),
            commit: COMMIT.into(),
            token: None,
            is_elsewhere: false,
            is_renamed: false,
            says: Vec::new(),
        }
    }

    pub fn with(mut self, path: &str, bytes: &[u8]) -> Self {
        self.files.insert(path.into(), bytes.to_vec());
        self
    }

    pub fn without(mut self, path: &str) -> Self {
        self.files.remove(path);
        self
    }

    pub fn script(mut self, script: &[Act]) -> Self {
        self.script = script.iter().copied().collect();
        self
    }

    pub fn at_commit(mut self, commit: &str) -> Self {
        self.commit = commit.into();
        self
    }

    pub fn gated(mut self, token: &'static str) -> Self {
        self.token = Some(token);
        self
    }

    pub fn elsewhere(mut self) -> Self {
        self.is_elsewhere = true;
        self
    }

    pub fn renamed(mut self) -> Self {
        self.is_renamed = true;
        self
    }

    pub fn says(mut self, file: &str, header: &'static str, value: Option<&str>) -> Self {
        self.says.push((file.into(), header, value.map(str::to_owned)));
        self
    }

    pub fn start(self) -> Running {
        let (listener, elsewhere) = (bind(), bind());
        let url = format!("http://{}", listener.local_addr().unwrap());
        // Another name of the same machine, and another port: either makes it another host.
        let mirror = format!("http://localhost:{}", elsewhere.local_addr().unwrap().port());
        let running = Running {
            url,
            seen: Seen::default(),
            asked: Asked::default(),
            asked_elsewhere: Asked::default(),
        };
        let hub = Arc::new(Mutex::new(self));
        for (listener, log, mirror) in [
            (listener, running.asked.clone(), Some(mirror)),
            (elsewhere, running.asked_elsewhere.clone(), None),
        ] {
            let (hub, seen) = (hub.clone(), running.seen.clone());
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    let Some(request) = Request::read(&stream) else {
                        continue;
                    };
                    log.lock().unwrap().push(request.clone());
                    // The client may hang up first.
                    hub.lock()
                        .unwrap()
                        .answer(&mut stream, &request, mirror.as_deref(), &seen)
                        .ok();
                }
            });
        }
        running
    }

    /// `mirror` is where large files are, unless this is that host.
    fn answer(
        &mut self,
        stream: &mut TcpStream,
        request: &Request,
        mirror: Option<&str>,
        seen: &Seen,
    ) -> std::io::Result<()> {
        let refused = self
            .token
            .is_some_and(|token| request.authorization != Some(format!("Bearer {token}")));
        if mirror.is_some() && refused {
            let status = if request.authorization.is_some() { 403 } else { 401 };
            return write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        if let Some(rest) = request
            .path
            .strip_prefix("/owner/tiny/")
            .filter(|_| self.is_renamed)
        {
            let status = "HTTP/1.1 307 X\r\nContent-Length: 0\r\nConnection: close\r\n";
            return write!(stream, "{status}Location: /owner/grown/{rest}\r\n\r\n");
        }
        let name = request.file().to_owned();
        let is_large = name.ends_with(".safetensors");
        let Some(content) = self.files.get(&name) else {
            if !request.head {
                seen.lock().unwrap().push((name, request.start));
            }
            return write!(
                stream,
                "HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        };
        let elsewhere = mirror.filter(|_| self.is_elsewhere && is_large);
        if request.head || elsewhere.is_some() {
            let mut headers = self.facts(&name, content);
            let status = match elsewhere {
                Some(host) => {
                    headers.insert("Location", format!("{host}/signed/{name}?signature=secret"));
                    302
                }
                None => 200,
            };
            let headers: String = headers
                .iter()
                .map(|(name, value)| format!("{name}: {value}\r\n"))
                .collect();
            return write!(
                stream,
                "HTTP/1.1 {status} X\r\n{headers}Connection: close\r\n\r\n"
            );
        }
        seen.lock().unwrap().push((name, request.start));
        let act = match is_large {
            true if self.script.len() > 1 => self.script.pop_front().unwrap(),
            true => self.script[0],
            false => Act::Serve,
        };
        send(stream, content, (request.start, request.end), act)
    }

    /// What is said of a file.
    fn facts(&self, name: &str, content: &[u8]) -> BTreeMap<&'static str, String> {
        let bytes = content.len().to_string();
        let etag = |hash: FileHash| {
            let text = hash.to_string();
            format!("\"{}\"", text.split_once(':').unwrap().1)
        };
        let mut headers: BTreeMap<&str, String> = [("X-Repo-Commit", self.commit.clone())].into();
        if name.ends_with(".safetensors") {
            headers.insert("X-Linked-Etag", etag(FileHash::sha256(content)));
            headers.insert("X-Linked-Size", bytes);
            headers.insert("ETag", "\"of-the-storage\"".into());
            headers.insert("Content-Length", "0".into());
        } else {
            headers.insert("ETag", etag(FileHash::git_blob(content)));
            headers.insert("Content-Length", bytes);
        }
        for (_, header, value) in self.says.iter().filter(|(file, ..)| file == name) {
            match value {
                Some(value) => headers.insert(header, value.clone()),
                None => headers.remove(header),
            };
        }
        headers
    }
}

fn bind() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// Only the headers are asked for.
    pub head: bool,
    pub path: String,
    /// First byte asked for.
    pub start: usize,
    /// The one after the last, if not all are.
    pub end: Option<usize>,
    pub authorization: Option<String>,
    /// All of it.
    pub text: String,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Self> {
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        let lines: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let first = lines.first()?;
        let header = |name: &str| {
            lines[1..].iter().find_map(|line| {
                let (found, value) = line.split_once(": ")?;
                found.eq_ignore_ascii_case(name).then(|| value.to_owned())
            })
        };
        let range = header("range").map(|range| {
            let (start, last) = range.strip_prefix("bytes=").unwrap().split_once('-').unwrap();
            let end = (!last.is_empty()).then(|| last.parse::<usize>().unwrap() + 1);
            (start.parse().unwrap(), end)
        });
        let (start, end) = range.unwrap_or_default();
        Some(Self {
            head: first.starts_with("HEAD "),
            path: first.split(' ').nth(1)?.to_owned(),
            start,
            end,
            authorization: header("authorization"),
            text: lines.join("\n"),
        })
    }

    /// The file's path in the repository.
    fn file(&self) -> &str {
        let path = self.path.split('?').next().unwrap_or_default();
        let signed = path.strip_prefix("/signed/");
        let resolved = ["/owner/tiny/resolve/", "/owner/grown/resolve/"]
            .iter()
            .find_map(|prefix| path.strip_prefix(prefix)?.split_once('/'))
            .map(|(_, file)| file);
        signed.or(resolved).unwrap_or_else(|| panic!("{path}"))
    }
}

fn send(
    stream: &mut TcpStream,
    content: &[u8],
    (start, end): (usize, Option<usize>),
    act: Act,
) -> std::io::Result<()> {
    let total = content.len();
    let end = end.map_or(total, |end| end.min(total));
    let (start, mut body) = match act {
        Act::IgnoreRange => (0, content.to_vec()),
        Act::Lie => (start, vec![b'!'; end - start]),
        Act::Bloat => (0, [content, content].concat()),
        _ => (start, content[start..end].to_vec()),
    };
    let (status, range) = match act {
        Act::Status(status) => (status, String::new()),
        _ if start == 0 && body.len() >= total => (200, String::new()),
        _ => (
            206,
            format!("Content-Range: bytes {start}-{}/{total}\r\n", end - 1),
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
