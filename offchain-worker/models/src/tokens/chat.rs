//! Conversations to ids: the template's special tokens are special, and nothing that people write is.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::OnceLock,
};

use serde::Deserialize;
use surety_types::model::TextForm;
use tokenizers::{AddedToken, Tokenizer};

use super::{TextCodec, TextFault, TextFiles, codec::shielded, special};
use crate::{
    chat::{
        ChatFault, Control, Controls, Facts, Job, Message, RenderFault, Renderer, check, marked,
        without_marks,
    },
    error::ModelError,
};

/// Most added tokens of a tokenizer that are looked for in a template. Published models have up to some
/// thousand.
const ADDED_MAX: usize = 16_384;

/// What a conversation needs of a model's files, beside its tokenizer.
pub(super) struct ChatForm {
    /// `chat_template.jinja`, where there is one.
    template: Option<Vec<u8>>,
    /// The token that a text begins with.
    bos: Option<u32>,
    /// Made when there is a conversation first.
    reader: OnceLock<Result<Reader, ChatFault>>,
}

#[derive(Deserialize)]
struct Config {
    bos_token_id: Option<u32>,
}

impl ChatForm {
    /// As the files say.
    pub(super) fn new(files: &TextFiles, form: &TextForm) -> Result<Self, ModelError> {
        let config: Config =
            serde_json::from_slice(&files.config).map_err(|error| ModelError::Config(error.to_string()))?;
        Ok(Self {
            template: files.template.clone(),
            bos: form.before.first().copied().or(config.bos_token_id),
            reader: OnceLock::new(),
        })
    }
}

/// A conversation as a model takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedChat {
    /// What the template makes of it, its special tokens as text.
    pub text: String,
    /// The same as ids, without any before or after it that are not the template's own.
    pub ids: Vec<u32>,
}

impl TextCodec {
    /// Whether the model takes conversations.
    pub fn has_template(&self) -> bool {
        self.chat.template.is_some()
    }

    /// The ids of a conversation, by the model's own template, up to where its answer begins; `unix_seconds`
    /// is what a template is told that names the day. May take seconds.
    ///
    /// # Errors
    /// [`ChatFault`].
    pub fn encode_chat(
        &self,
        messages: &[Message],
        unix_seconds: u64,
        renderer: &dyn Renderer,
    ) -> Result<EncodedChat, ChatFault> {
        let template = self.chat.template.as_deref().ok_or(ChatFault::NoTemplate)?;
        let template =
            std::str::from_utf8(template).map_err(|error| RenderFault::Malformed(error.to_string()))?;
        check(template)?;
        let reader = self
            .chat
            .reader
            .get_or_init(|| Reader::new(&self.tokenizer, &self.form, template));
        let reader = reader.as_ref().map_err(Clone::clone)?;
        let job = Job {
            template: template.into(),
            messages: marked(messages, &reader.controls)?,
            facts: Facts {
                tokens: self.named_tokens(),
                unix_seconds,
            },
        };
        let text = renderer.render(&job)?;
        let ids = reader.ids(&text)?;
        Ok(EncodedChat {
            text: without_marks(&text),
            ids,
        })
    }

    /// Special tokens as text, by what templates call them. What the authors' `tokenizer_config.json` calls
    /// so is not kept; what a manifest lists is the same.
    fn named_tokens(&self) -> BTreeMap<String, String> {
        let form = &self.form;
        let named = [
            ("bos_token", self.chat.bos),
            ("eos_token", form.stop.first().copied()),
            ("unk_token", form.unknown),
            ("pad_token", form.padding),
        ];
        let text =
            |(name, id): (&str, Option<u32>)| Some((name.to_owned(), self.tokenizer.id_to_token(id?)?));
        named.into_iter().filter_map(text).collect()
    }
}

/// Reads a template's text. Its tokenizer has another token for each that nobody's words become, which stands
/// for it where the template itself has written it: so all text between them is read in one piece, as the
/// library reads it wherever it stands.
struct Reader {
    tokenizer: Tokenizer,
    controls: Controls,
    /// Whose ids those of the tokenizer's aliases stand for.
    aliases: BTreeMap<u32, u32>,
    /// Ids that nothing else may become.
    reserved: BTreeSet<u32>,
}

impl Reader {
    fn new(tokenizer: &Tokenizer, form: &TextForm, template: &str) -> Result<Self, ChatFault> {
        let refused = |reason: &str| ChatFault::from(TextFault::Library(reason.into()));
        let own = control_tokens(tokenizer, form, template)?;
        let control = |(id, token): &(u32, AddedToken)| Control {
            text: token.content.clone(),
            in_answers: !token.special && !special::is_reserved(form, *id),
        };
        let controls = Controls::new(own.iter().map(control).collect())?;
        let highest = tokenizer.get_vocab(true).into_values().max().unwrap_or_default();
        let mut tokenizer = tokenizer.clone();
        shielded(|| {
            // The library reads no special token in a text.
            tokenizer.add_tokens(own.iter().map(|(_, token)| token.clone().special(true)))?;
            let alias = |(place, (_, token)): (usize, &(u32, AddedToken))| AddedToken {
                content: Controls::alias(place),
                normalized: false,
                special: false,
                ..token.clone()
            };
            tokenizer.add_tokens(own.iter().enumerate().map(alias))
        })?;
        let mut aliases = BTreeMap::new();
        for (place, (id, _)) in own.iter().enumerate() {
            // An id that stands for something else already would make that special.
            let alias = tokenizer
                .token_to_id(&Controls::alias(place))
                .filter(|alias| *alias > highest);
            aliases.insert(alias.ok_or_else(|| refused("it takes no more tokens"))?, *id);
        }
        let own = own.into_iter().map(|(id, _)| id).chain(form.ids());
        Ok(Self {
            tokenizer,
            controls,
            aliases,
            reserved: own.filter(|id| form.unknown != Some(*id)).collect(),
        })
    }

    /// The ids of a template's text, in which people's words are marked.
    fn ids(&self, text: &str) -> Result<Vec<u32>, ChatFault> {
        let text = self.controls.found(text);
        let encoding = shielded(|| self.tokenizer.encode_fast(text.as_str(), false))?;
        let read = |id: &u32| match self.aliases.get(id) {
            Some(control) => Ok(*control),
            None if self.reserved.contains(id) => Err(TextFault::Special { id: *id }.into()),
            None => Ok(*id),
        };
        encoding.get_ids().iter().map(read).collect()
    }
}

/// The tokens that nobody's words become, in ascending order of ids: those that are special, those that a
/// manifest lists, and those that the template names.
fn control_tokens(
    tokenizer: &Tokenizer,
    form: &TextForm,
    template: &str,
) -> Result<Vec<(u32, AddedToken)>, ChatFault> {
    let added: BTreeMap<u32, AddedToken> = tokenizer.get_added_tokens_decoder().into_iter().collect();
    if added.len() > ADDED_MAX {
        return Err(ChatFault::TooManySpecial(added.len()));
    }
    // White space and single characters are no tokens that a template says something by.
    let is_named =
        |text: &str| text.trim() == text && text.chars().nth(1).is_some() && template.contains(text);
    let is_control = |(id, token): &(u32, AddedToken)| {
        token.special || special::is_reserved(form, *id) || is_named(&token.content)
    };
    Ok(added.into_iter().filter(is_control).collect())
}
