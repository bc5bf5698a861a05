//! The pool of a node made up for tests: it takes calls, refuses and forgets them as the test tells it to.

use codec::{Compact, Decode};
use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{Value, json};
use sp_core::H256;

use super::node::{Context, State};

/// What becomes of an extrinsic that is handed over.
#[derive(Clone, Debug)]
pub enum Answer {
    /// It gets into the next block.
    Take,
    /// The JSON-RPC error of that code, with that data.
    Refuse(i32, &'static str),
    /// The pool takes it, and tells this, and nothing more.
    Tell(Vec<Value>),
    /// It gets into the next block, but the node tells nobody.
    TakeInSilence,
    /// The pool takes it, but its answer never comes.
    TakeMute,
    /// One that the pool took before, and of which it has told nothing since, gets into the next block
    /// instead.
    TakeEarlier,
}

fn is_signed(extrinsic: &[u8]) -> bool {
    let mut input = extrinsic;
    Compact::<u32>::decode(&mut input).unwrap();
    input.first() == Some(&0x84)
}

/// Nonce and tip of a signed extrinsic.
pub fn terms(extrinsic: &[u8]) -> (u32, u128) {
    let mut input = extrinsic;
    Compact::<u32>::decode(&mut input).unwrap();
    // Version, address and signature, each with its kind; the era.
    let mut rest = &input[1 + 33 + 65 + 2..];
    let nonce = Compact::<u32>::decode(&mut rest).unwrap().0;
    let tip = Compact::<u128>::decode(&mut rest).unwrap().0;
    (nonce, tip)
}

/// First block of a signed extrinsic's era, if it was signed in the last period.
pub fn era(extrinsic: &[u8]) -> u16 {
    let mut input = extrinsic;
    Compact::<u32>::decode(&mut input).unwrap();
    u16::decode(&mut &input[1 + 33 + 65..]).unwrap()
}

impl State {
    /// Makes a block with an extrinsic.
    pub fn include(&mut self, extrinsic: Vec<u8>) -> H256 {
        self.best += 1;
        self.finalized = self.best - 1;
        self.nonce += u32::from(is_signed(&extrinsic));
        self.blocks.insert(self.best, vec![extrinsic]);
        self.hash(self.best)
    }

    /// Makes a block with one of those that the pool holds, if the turn of one has come.
    pub fn include_held(&mut self) -> bool {
        let nonce = self.nonce;
        let mut held = self.held.iter();
        let Some(at) = held.position(|bytes| is_signed(bytes) && terms(bytes).0 == nonce) else {
            return false;
        };
        let extrinsic = self.held.remove(at);
        self.include(extrinsic);
        true
    }
}

impl Context {
    /// Takes an extrinsic in, or refuses it; what is told of it then, if anything.
    pub fn take(&self, extrinsic: Vec<u8>) -> Result<Option<Vec<Value>>, ErrorObjectOwned> {
        let mut state = self.state();
        state.handed_over.push(extrinsic.clone());
        let refused = |code, data: &str| Err(ErrorObjectOwned::owned(code, "refused", Some(data)));
        if state.dead.contains(&extrinsic) {
            return refused(1010, "Transaction has a bad signature");
        }
        let answer = state.answers.pop_front().unwrap_or(Answer::Take);
        if let Answer::Refuse(code, data) = answer {
            return refused(code, data);
        }
        if is_signed(&extrinsic) && terms(&extrinsic).0 < state.nonce {
            return refused(1010, "Transaction is outdated");
        }
        if is_signed(&extrinsic) && terms(&extrinsic).0 > state.nonce {
            if state.held.contains(&extrinsic) {
                return refused(1013, "");
            }
            state.held.push(extrinsic);
            return Ok(Some(vec![json!("future")]));
        }
        let block = match answer {
            Answer::Tell(told) => {
                state.held.push(extrinsic);
                return Ok(Some(told));
            }
            Answer::TakeMute => {
                state.held.push(extrinsic);
                return Ok(None);
            }
            Answer::TakeEarlier => match state.include_held() {
                true => {
                    let other = state.hash(state.best);
                    self.announce(&state);
                    return Ok(Some(vec![json!({ "usurped": other })]));
                }
                false => state.include(extrinsic),
            },
            _ => state.include(extrinsic),
        };
        self.announce(&state);
        Ok(Some(match answer {
            Answer::TakeInSilence => vec![json!("ready")],
            _ => vec![json!("ready"), json!({ "inBlock": block })],
        }))
    }

    fn announce(&self, state: &State) {
        self.heads.send_replace((state.best, state.finalized));
    }
}
