//! `surety-simulation [--quick] [--seed N] [--blocks NAME=N,..]`: plays everything and prints the report as
//! JSON. What it is doing goes to the other stream. `scripts/bench trust` is the comfortable way to run it.

use std::process::ExitCode;

use surety_simulation::{
    report::{Size, report},
    rules::{Blocks, Rules},
};

const USAGE: &str = "surety-simulation [--quick] [--seed N] [--blocks audit=N,reveal=N,challenge=N,opening=N,clock=N,decision=N,veto=N,unbonding=N]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut size, mut seed, mut rules) = (Size::FULL, 2_609, Rules::default());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--quick" => size = Size::QUICK,
            "--seed" => seed = value()?.parse().map_err(|_| "a seed is a number")?,
            "--blocks" => value()?
                .split(',')
                .try_for_each(|pair| set(&mut rules.blocks, pair))?,
            _ => return Err(format!("what is {argument}?")),
        }
    }
    let found = report(&rules, seed, size, &|text| eprintln!("{text}")).map_err(|why| why.to_string())?;
    println!("{found:#}");
    Ok(())
}

fn set(blocks: &mut Blocks, pair: &str) -> Result<(), String> {
    let wrong = || format!("{pair:?} is no window");
    let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
    let field = match name {
        "audit" => &mut blocks.audit,
        "reveal" => &mut blocks.reveal,
        "challenge" => &mut blocks.challenge,
        "opening" => &mut blocks.opening,
        "clock" => &mut blocks.clock,
        "decision" => &mut blocks.decision,
        "veto" => &mut blocks.veto,
        "unbonding" => &mut blocks.unbonding,
        _ => return Err(wrong()),
    };
    *field = value.parse().map_err(|_| wrong())?;
    Ok(())
}
