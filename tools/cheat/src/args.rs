//! What to do wrong, as typed.

use clap::{CommandFactory, Parser, ValueEnum, error::ErrorKind};
use surety_cli::args::{Cli, Command, GatewayCommand, ProviderCommand};

/// `surety` with workers that do something wrong. It costs real stake on a real network.
#[derive(Debug, Parser)]
#[command(name = "surety-cheat", version)]
pub struct CheatCli {
    /// The command line of `surety`.
    #[command(flatten)]
    pub surety: Cli,
    /// Do this wrong, to see what comes of it
    #[arg(long, global = true, value_name = "KIND", env = "SURETY_CHEAT")]
    pub cheat: Option<Cheat>,
    /// Abort, as if killed, at the given point of a task's life
    #[arg(long, global = true, value_name = "POINT", env = "SURETY_CRASH_AT")]
    pub crash_at: Option<CrashPoint>,
}

impl CheatCli {
    /// # Errors
    /// When the worker that is started cannot do that wrong.
    pub fn check(&self) -> Result<(), clap::Error> {
        let fits = match (&self.surety.command, self.cheat) {
            (_, None) => true,
            (Command::Gateway(GatewayCommand::Up(_)), Some(cheat)) => cheat == Cheat::UnpaidLastChunk,
            (_, Some(Cheat::UnpaidLastChunk)) => false,
            (Command::Provider(ProviderCommand::Up(_)), Some(cheat)) => !cheat.is_verifiers_alone(),
            (Command::Verifier(_), Some(cheat)) => cheat == Cheat::Abort || cheat.is_verifiers_alone(),
            (_, Some(_)) => false,
        };
        if fits {
            return Ok(());
        }
        Err(Self::command().error(
            ErrorKind::ArgumentConflict,
            "this command cannot do that wrong: some cheats are for \"provider up\", others for \"verifier up\" or \"gateway up\"",
        ))
    }
}

/// What to do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Cheat {
    /// Provider: deliver vectors with one bit changed.
    AlteredOutput,
    /// Provider: change one bit of one number in the middle of the model.
    AlteredActivation,
    /// Provider: read a token of the input as another one.
    AlteredToken,
    /// Provider: compute with weights of four bits.
    ModelSwap,
    /// Provider: commit to what another one committed to.
    CopiedResult,
    /// Provider: commit, and keep silent.
    CommitWithoutReveal,
    /// Provider: reveal, and serve nothing.
    WithheldData,
    /// Provider: say something wrong, serve it to nobody, and show it in no dispute.
    WithheldOutput,
    /// Provider: serve auditors another output than the one that is revealed.
    TwoFaced,
    /// Provider: say something wrong, and have others take all the places that there are.
    Crowding,
    /// Provider and verifier: commit, or seal an audit, and open nothing.
    Abort,
    /// Verifier: announce audits without computing anything.
    Lazy,
    /// Verifier: challenge a result that is right.
    FalseChallenge,
    /// Provider: change the last token of answers over payment channels.
    WrongToken,
    /// Provider: sign receipts, and show none of them to the chain.
    OmittedReceipt,
    /// Provider: sign a receipt that contradicts what was said before.
    DoubleReceipt,
    /// Provider: say and sign something else than what is kept and batched, over payment channels.
    SaysOther,
    /// Provider: break answers off before their end, and keep and batch something else than was said.
    BreaksOff,
    /// Provider: redeem vouchers of other channels and of other chains.
    VoucherReplay,
    /// Verifier: dispute a receipt that is right.
    FalseDispute,
    /// Gateway: sign no voucher after the first.
    UnpaidLastChunk,
}

impl Cheat {
    fn is_verifiers_alone(self) -> bool {
        matches!(self, Self::Lazy | Self::FalseChallenge | Self::FalseDispute)
    }
}

/// Where to abort, so that it can be seen that the worker recovers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrashPoint {
    /// A result is in the journal, and its commitment is not yet on its way to the chain.
    AfterJournalCommit,
    /// The first token of a generation was made.
    MidGeneration,
    /// An audit is in the journal, and its seal is not yet on its way to the chain.
    AfterAudit,
    /// A move is in the journal, and not yet on its way to the chain.
    AfterMove,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn is_taken(words: &str) -> bool {
        let args = CheatCli::try_parse_from(words.split(' '));
        args.is_ok_and(|args| args.check().is_ok())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        CheatCli::command().debug_assert();
    }

    #[test]
    fn each_role_has_its_own_cheats_and_both_crash() {
        assert!(is_taken(
            "surety-cheat provider up --stash x --cheat altered-output"
        ));
        assert!(is_taken(
            "surety-cheat verifier up --stash x --cheat lazy --crash-at after-audit"
        ));
        assert!(is_taken("surety-cheat provider up --crash-at mid-generation"));
        assert!(!is_taken("surety-cheat provider up --cheat lazy"));
        assert!(is_taken("surety-cheat provider up --stash x --cheat abort"));
        assert!(is_taken("surety-cheat verifier up --stash x --cheat abort"));
        assert!(!is_taken("surety-cheat verifier up --stash x --cheat two-faced"));
        assert!(!is_taken("surety-cheat verifier up --cheat model-swap"));
        assert!(!is_taken("surety-cheat task list --cheat model-swap"));
        assert!(is_taken("surety-cheat task list"));
        assert!(is_taken(
            "surety-cheat verifier up --stash x --cheat false-dispute"
        ));
        assert!(!is_taken(
            "surety-cheat provider up --stash x --cheat false-dispute"
        ));
        assert!(is_taken("surety-cheat provider up --stash x --cheat breaks-off"));
        assert!(!is_taken("surety-cheat verifier up --stash x --cheat breaks-off"));
        assert!(is_taken("surety-cheat gateway up --cheat unpaid-last-chunk"));
        assert!(!is_taken("surety-cheat gateway up --cheat double-receipt"));
        assert!(!is_taken("surety-cheat provider up --cheat unpaid-last-chunk"));
    }
}
