//! The access token of the model hub: found where the hub's own tools look for it, and shown nowhere.

use std::{env, ffi::OsString, fmt, fs::File, io::Read, path::PathBuf, str::FromStr};

use ureq::http::HeaderValue;

use super::HUB_URL;

/// Where users of the hub put it.
const VARIABLE: &str = "HF_TOKEN";

/// Longer than any: they have some forty.
const BYTES_MAX: usize = 512;

/// What an `Authorization` header says for whoever has the token.
#[derive(Clone)]
pub struct Token(HeaderValue);

/// The text is no token. It is not repeated: it may be another secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what {place} holds is no access token of the model hub")]
pub struct NoToken {
    /// The variable or the file.
    place: String,
}

impl Token {
    /// The token in the variable `HF_TOKEN`, or else, for the hub itself, the one that its command line has
    /// kept in `$HF_HOME/token` or `~/.cache/huggingface/token`. A mirror is told none that was not put into
    /// the variable.
    ///
    /// # Errors
    /// [`NoToken`].
    pub fn of_environment(hub_url: &str) -> Result<Option<Self>, NoToken> {
        Self::find(hub_url, |name| env::var_os(name))
    }

    fn find(hub_url: &str, variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, NoToken> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        if let Some(token) = set(VARIABLE) {
            return Self::read(VARIABLE.into(), &token.to_string_lossy());
        }
        if hub_url.trim_end_matches('/') != HUB_URL {
            return Ok(None);
        }
        let cache = || {
            let home = || set("HOME").map(|home| PathBuf::from(home).join(".cache"));
            set("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)
        };
        let folder = set("HF_HOME").map(PathBuf::from);
        let Some(folder) = folder.or_else(|| Some(cache()?.join("huggingface"))) else {
            return Ok(None);
        };
        let path = folder.join("token");
        let mut text = String::new();
        // None, or none for us.
        let Ok(file) = File::open(&path) else {
            return Ok(None);
        };
        let place = path.display().to_string();
        match file.take(BYTES_MAX as u64 + 2).read_to_string(&mut text) {
            Ok(_) => Self::read(place, &text),
            Err(_) => Err(NoToken { place }),
        }
    }

    fn read(place: String, text: &str) -> Result<Option<Self>, NoToken> {
        match text.trim() {
            "" => Ok(None),
            token => token
                .parse()
                .map(Some)
                .map_err(|NoToken { .. }| NoToken { place }),
        }
    }

    /// The value of an `Authorization` header.
    pub(super) fn header(&self) -> &HeaderValue {
        &self.0
    }
}

impl FromStr for Token {
    type Err = NoToken;

    fn from_str(text: &str) -> Result<Self, NoToken> {
        let refused = || NoToken {
            place: "the text".into(),
        };
        if text.is_empty() || text.len() > BYTES_MAX || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused());
        }
        let mut header = HeaderValue::try_from(format!("Bearer {text}")).map_err(|_| refused())?;
        header.set_sensitive(true);
        Ok(Self(header))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(not shown)")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::{collections::BTreeMap, fs};

    use super::*;

    fn found(hub: &str, variables: &[(&str, &str)]) -> Result<Option<String>, NoToken> {
        let variables: BTreeMap<&str, OsString> = variables
            .iter()
            .map(|(name, value)| (*name, OsString::from(value)))
            .collect();
        let token = Token::find(hub, |name| variables.get(name).cloned())?;
        Ok(token.map(|token| token.header().to_str().unwrap().to_owned()))
    }

    #[test]
    fn a_token_is_found_where_the_tools_of_the_hub_look() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str| home.path().join(path).display().to_string();
        for (folder, token) in [
            ("hf", "hf_own"),
            (".cache/huggingface", "hf_home"),
            ("xdg/huggingface", "hf_xdg"),
        ] {
            fs::create_dir_all(home.path().join(folder)).unwrap();
            fs::write(home.path().join(folder).join("token"), format!("{token}\n")).unwrap();
        }
        let all = [
            ("HF_TOKEN", "hf_set"),
            ("HF_HOME", &at("hf")),
            ("XDG_CACHE_HOME", &at("xdg")),
            ("HOME", &at("")),
        ];
        let expected = [
            "Bearer hf_set",
            "Bearer hf_own",
            "Bearer hf_xdg",
            "Bearer hf_home",
        ];
        for (first, expected) in expected.into_iter().enumerate() {
            assert_eq!(found(HUB_URL, &all[first..]).unwrap().as_deref(), Some(expected));
        }
        assert_eq!(found(HUB_URL, &[]).unwrap(), None);
        assert_eq!(
            found(HUB_URL, &[("HF_TOKEN", ""), ("HOME", &at("nothing"))]).unwrap(),
            None
        );
        // A mirror gets what was set for it, not what was kept for the hub.
        assert_eq!(found("https://mirror.example", &all[1..]).unwrap(), None);
        assert!(found("https://mirror.example", &all).unwrap().is_some());
    }

    #[test]
    fn what_is_no_token_is_not_repeated() {
        let long = "x".repeat(BYTES_MAX + 1);
        for text in ["two words", "line\nbreak", "umläut", &long] {
            let refused = found(HUB_URL, &[("HF_TOKEN", text)]).unwrap_err();
            assert!(refused.to_string().contains("HF_TOKEN"), "{refused}");
            assert!(!format!("{refused:?} {refused}").contains(text));
        }
        let token: Token = "hf_secret".parse().unwrap();
        assert!(!format!("{token:?} {:?}", token.header()).contains("secret"));
    }
}
