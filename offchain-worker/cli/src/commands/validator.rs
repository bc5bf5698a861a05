//! `surety validator`: a validator's life.

mod init;
mod join;
mod keys;
mod leave;
mod status;

use surety_chain_client::{Call, StakeCall};

use super::{Context, account};
use crate::{args::ValidatorCommand, error::Result};

pub(super) async fn run(context: &Context, command: ValidatorCommand) -> Result<()> {
    match command {
        ValidatorCommand::Init(args) => init::run(context, &args).await,
        ValidatorCommand::Join(args) => join::run(context, &args).await,
        ValidatorCommand::Rotate => keys::rotate(context).await,
        ValidatorCommand::Leave => leave::run(context).await,
        ValidatorCommand::Commission { commission } => {
            account::submit(context, Call::Stake(StakeCall::SetCommission { commission })).await
        }
        ValidatorCommand::Status(args) => status::run(context, &args).await,
    }
}

/// Millionths as people read them.
pub(super) fn percent(millionths: u32) -> String {
    let (whole, rest) = (millionths / 10_000, millionths % 10_000);
    let text = format!("{whole}.{rest:04}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_percent() {
        let cases = [
            (50_000, "5 %"),
            (25_000, "2.5 %"),
            (1, "0.0001 %"),
            (0, "0 %"),
            (1_000_000, "100 %"),
        ];
        for (part, text) in cases {
            assert_eq!(percent(part), text);
        }
    }
}
