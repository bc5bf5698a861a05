//! What the providers of a task have to be.

use clap::{Args, ValueEnum};
use surety_types::{
    region::Region,
    speed::{Requirements, Tier},
};

/// Who may compute a task, by what the chain's benchmark has measured, and by where they say that they are.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Providers")]
pub struct RequirementArgs {
    /// Only providers measured to be in tier A, B or C, or a faster one [default: any, measured or not]
    #[arg(
        long,
        value_name = "TIER",
        value_enum,
        ignore_case = true,
        hide_possible_values = true
    )]
    pub min_tier: Option<MinTier>,
    /// Only providers measured over so much memory, such as 24GiB or 512MiB [default: any]
    #[arg(long, value_name = "SIZE", value_parser = memory_mib)]
    pub min_memory: Option<u32>,
    /// Only providers that say that they are in this country, such as DE; nobody checks it [default: any]
    #[arg(long, value_name = "COUNTRY")]
    pub region: Option<Region>,
}

/// A tier by its letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MinTier {
    /// 20 * 10^12 operations a second, or more
    #[value(name = "A")]
    A,
    /// From 5 * 10^12
    #[value(name = "B")]
    B,
    /// Measured at all
    #[value(name = "C")]
    C,
}

impl RequirementArgs {
    /// As the chain takes it.
    pub fn requirements(&self) -> Requirements {
        let tier = |tier| match tier {
            MinTier::A => Tier::A,
            MinTier::B => Tier::B,
            MinTier::C => Tier::C,
        };
        Requirements {
            tier: self.min_tier.map(tier),
            memory_mib: self.min_memory.unwrap_or(0),
            region: self.region,
        }
    }
}

/// Whole MiB of a size with its unit.
fn memory_mib(text: &str) -> Result<u32, String> {
    let mib = |number: &str, factor: u32| number.trim().parse::<u32>().ok()?.checked_mul(factor);
    let size = match (text.strip_suffix("GiB"), text.strip_suffix("MiB")) {
        (Some(number), _) => mib(number, 1024),
        (None, Some(number)) => mib(number, 1),
        (None, None) => None,
    };
    size.ok_or_else(|| "write a whole number of GiB or MiB, such as 24GiB".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RequirementArgs,
    }

    fn parsed(flags: &[&str]) -> Option<Requirements> {
        let line = ["surety"].iter().chain(flags).copied();
        Line::try_parse_from(line)
            .ok()
            .map(|line| line.args.requirements())
    }

    #[test]
    fn nothing_is_asked_for_unless_told() {
        assert_eq!(parsed(&[]), Some(Requirements::default()));
        let told = parsed(&["--min-tier", "b", "--min-memory", "24GiB", "--region", "DE"]);
        let expected = Requirements {
            tier: Some(Tier::B),
            memory_mib: 24 * 1024,
            region: "DE".parse().ok(),
        };
        assert_eq!(told, Some(expected));
        assert_eq!(parsed(&["--min-memory", "512MiB"]).unwrap().memory_mib, 512);
    }

    #[test]
    fn tiers_sizes_and_regions_that_are_none_are_refused() {
        for flags in [
            ["--min-tier", "D"],
            ["--min-memory", "24"],
            ["--min-memory", "5000000GiB"],
            ["--region", "de"],
            ["--region", "EUR"],
        ] {
            assert_eq!(parsed(&flags), None, "{flags:?}");
        }
    }
}
