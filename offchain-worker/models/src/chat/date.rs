//! Days as templates name them, in UTC.

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
/// Longest format, in bytes.
const FORMAT_BYTES_MAX: usize = 256;

/// Year, month and day of a day since 1970, by Howard Hinnant's `civil_from_days`.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days.saturating_add(719_468);
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era
        .saturating_mul(400)
        .saturating_add(year)
        .saturating_add(u64::from(month <= 2));
    (year, month, day)
}

/// A time in seconds since 1970, as a format of `strftime` says.
///
/// # Errors
/// What of the format is not known, in words.
pub(super) fn formatted(unix_seconds: u64, format: &str) -> Result<String, String> {
    if format.len() > FORMAT_BYTES_MAX {
        return Err("the format of a date is too long".into());
    }
    let (days, of_day) = (unix_seconds / 86_400, unix_seconds % 86_400);
    let (year, month, day) = civil(days);
    let name = |names: &[&'static str], place: u64| {
        let place = usize::try_from(place).unwrap_or_default();
        names.get(place).copied().unwrap_or_default()
    };
    let month_name = name(&MONTHS, month.saturating_sub(1));
    // The first day of 1970 was a Thursday.
    let weekday = name(&WEEKDAYS, days.saturating_add(3) % 7);
    let short = |name: &str| name.chars().take(3).collect::<String>();
    let (mut text, mut rest) = (String::new(), format.chars());
    while let Some(c) = rest.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        text.push_str(&match rest.next() {
            Some('Y') => year.to_string(),
            Some('y') => format!("{:02}", year % 100),
            Some('m') => format!("{month:02}"),
            Some('B') => month_name.into(),
            Some('b') => short(month_name),
            Some('d') => format!("{day:02}"),
            Some('A') => weekday.into(),
            Some('a') => short(weekday),
            Some('H') => format!("{:02}", of_day / 3_600),
            Some('M') => format!("{:02}", of_day / 60 % 60),
            Some('S') => format!("{:02}", of_day % 60),
            Some('%') => "%".into(),
            other => return Err(format!("no date has a part %{}", other.unwrap_or(' '))),
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_named_as_in_a_calendar() {
        for (seconds, format, expected) in [
            (0, "%d %b %Y, %A", "01 Jan 1970, Thursday"),
            (951_782_400, "%Y-%m-%d %a", "2000-02-29 Tue"),
            (1_735_689_599, "%d %B %y %H:%M:%S", "31 December 24 23:59:59"),
            (1_795_564_800, "%d %b %Y 100%%", "25 Nov 2026 100%"),
        ] {
            assert_eq!(formatted(seconds, format).as_deref(), Ok(expected));
        }
        assert!(formatted(u64::MAX, "%Y").is_ok());
        assert!(formatted(0, "%Q").is_err() && formatted(0, "%").is_err());
        assert!(formatted(0, &"x".repeat(257)).is_err());
    }
}
