//! `surety task`, as typed.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, builder::TypedValueParser, value_parser};
use surety_types::{TaskId, limits};

use super::{RequirementArgs, SecurityArgs};
use crate::{
    amount::Amount,
    decimal::{temperature, top_p},
};

/// `surety task`.
#[derive(Debug, Subcommand)]
pub enum TaskCommand {
    /// Post a task, serve its input, and wait for the result
    Submit(Box<SubmitArgs>),
    /// Follow a task to its end; serves its input, if that is here and the task is ours
    Watch(WatchArgs),
    /// Explain a task in words, step by step, from the chain's blocks: who did what, and who was not paid
    Explain(ExplainArgs),
    /// Fetch the result of a task from its providers, and check it; prints a generated text
    Result(ResultArgs),
    /// Tasks that the chain knows, newest first
    List(ListArgs),
    /// Withdraw a task that is not assigned yet
    Cancel(TaskArg),
    /// For some lines of a text, the nearest other line by its embedding
    Nearest(NearestArgs),
}

/// What is to be computed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("work").required(true).args(["file", "prompt", "prompt_file", "messages"]))]
#[command(group = ArgGroup::new("prompting").args(["prompt", "prompt_file", "messages"]))]
#[command(group = ArgGroup::new("one_prompt").args(["prompt", "prompt_file"]))]
pub struct SpecArgs {
    /// Text to embed, UTF-8, one item a line; empty lines are skipped
    #[arg(long, alias = "input", value_name = "TEXT")]
    pub file: Option<PathBuf>,
    /// What a model that generates is to answer; a model without a chat template goes on from it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// The same from a file, UTF-8, taken as it is
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
    /// A conversation to answer, as JSON: [{"role": "user", "content": "Hello"}]; roles are system, user and
    /// assistant
    #[arg(long, value_name = "FILE")]
    pub messages: Option<PathBuf>,
    /// Model, by name or id
    #[arg(long, value_name = "MODEL")]
    pub model: String,
    /// How many independent providers compute it
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = redundancy())]
    pub redundancy: u32,
    /// Most units to pay for; of a text never more than its lines [default: those; or --max-tokens and
    /// those of the prompt]
    #[arg(long, value_name = "N")]
    pub units_max: Option<u32>,
    /// How closely it is watched.
    #[command(flatten)]
    pub security: SecurityArgs,
    /// Who may compute it.
    #[command(flatten)]
    pub requirements: RequirementArgs,
    /// How to go on from the prompt.
    #[command(flatten)]
    pub generate: GenerateArgs,
}

/// As many as the chain draws for one task.
pub(super) fn redundancy() -> impl TypedValueParser<Value = u32> {
    value_parser!(u32).range(1..=i64::from(limits::REDUNDANCY_MAX))
}

/// Flags of `surety task submit`.
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// The most to pay in all, fee included, such as "5 SURE" [default: what "surety quote" says]
    #[arg(long, value_name = "AMOUNT")]
    pub cap: Option<Amount>,
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
    /// When to leave: with the result that the providers agree on, which can be challenged yet, or when it is
    /// settled and paid
    #[arg(long, value_enum, default_value = "result")]
    pub until: UntilArg,
    /// Print generated text while it is made; with --json as one event a line, the last of them the report
    #[arg(long, requires = "prompting", conflicts_with = "detach")]
    pub follow: bool,
    /// What is to be computed. Last: the headings of its flags would stand above all that follow.
    #[command(flatten)]
    pub spec: SpecArgs,
}

/// When `surety task submit` leaves a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UntilArg {
    /// When its result is here.
    Result,
    /// When it is settled.
    Settled,
}

/// How a prompt is continued.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Generating")]
pub struct GenerateArgs {
    /// What the model is told before the prompt, such as "Answer in one sentence."; needs a chat template
    #[arg(long, value_name = "TEXT", requires = "one_prompt")]
    pub system: Option<String>,
    /// Go on from the prompt as it is, also where the model has a chat template
    #[arg(long, requires = "one_prompt", conflicts_with = "system")]
    pub raw: bool,
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

/// Flags of `surety task explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// Number of the task [default: the newest that was submitted from this home]
    #[arg(value_name = "ID")]
    pub task: Option<TaskId>,
    /// Most blocks to look back from the task's end, or from now while it goes on; a node that is no archive
    /// keeps the newest alone
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub blocks: u32,
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
