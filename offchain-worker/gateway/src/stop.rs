//! Stop strings, wherever tokens end.

/// Holds back what may become a stop string.
#[derive(Debug)]
pub(crate) struct StopFilter {
    stops: Vec<String>,
    held: String,
}

impl StopFilter {
    pub fn new(stops: Vec<String>) -> Self {
        Self {
            stops,
            held: String::new(),
        }
    }

    /// What can be told, and whether a stop string has come. Nothing comes after it.
    pub fn push(&mut self, text: &str) -> (String, bool) {
        self.held.push_str(text);
        let first = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()))
            .min();
        if let Some(at) = first {
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), true);
        }
        let begins = |at: &usize| {
            let rest = self.held.get(*at..).unwrap_or_default();
            self.stops.iter().any(|stop| stop.starts_with(rest))
        };
        let keep = self.held.char_indices().map(|(at, _)| at).find(begins);
        let kept = keep.map_or_else(String::new, |at| self.held.split_off(at));
        (std::mem::replace(&mut self.held, kept), false)
    }

    /// What was held back when the text has ended.
    pub fn end(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_string_ends_a_text_however_it_is_cut_into_pieces() {
        let text = "häuser und häuer, ECHO.";
        for (stops, expected) in [
            (vec!["häue"], "häuser und "),
            (vec!["ECHO", "r, E"], "häuser und häue"),
            (vec!["nie"], text),
            (vec![], text),
        ] {
            for size in 1..6 {
                let mut filter = StopFilter::new(stops.iter().map(|stop| (*stop).to_owned()).collect());
                let mut told = String::new();
                let mut is_over = false;
                let chars: Vec<char> = text.chars().collect();
                for piece in chars.chunks(size) {
                    let (more, stopped) = filter.push(&piece.iter().collect::<String>());
                    told.push_str(&more);
                    is_over = stopped;
                    if stopped {
                        break;
                    }
                }
                told.push_str(&filter.end());
                assert_eq!(
                    (told.as_str(), is_over),
                    (expected, expected != text),
                    "{stops:?} by {size}"
                );
            }
        }
    }

    #[test]
    fn what_begins_no_stop_string_is_told_at_once() {
        let mut filter = StopFilter::new(vec!["abc".into()]);
        assert_eq!(filter.push("xab"), ("x".into(), false));
        assert_eq!(filter.push("or"), ("abor".into(), false));
    }
}
