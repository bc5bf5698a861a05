//! Games about receipts, from what was shown of them alone.

use std::sync::Arc;

use surety_chain_client::sample;
use surety_dispute_game::bisection::{Clocks, Game, Side};
use surety_engine::{Claimed, Engine, EnginePool, PoolConfig, Priority};
use surety_model_trace::CellReferee;
use surety_point_audits::{
    games::View,
    shown::{Receipt, Shown, look},
};

use crate::{
    cheats::{Provider, Stage},
    generating::quiet,
};

/// A receipt, as the verifier has it.
fn receipt(stage: &Stage, provider: &Provider, nonce: u32) -> Receipt {
    let batches =
        |state: &mut surety_chain_client::FakeState| state.channels.batches.values().next().cloned();
    let view = stage.setup.chain.change(batches).unwrap();
    let before = provider.made.iter().take(nonce as usize);
    let start = before.map(|made| made.statement.price).sum();
    let at = provider.at(start).unwrap();
    match look(&stage.setup.genesis(), &view, start, at).unwrap() {
        Shown::Receipt(receipt, at) => {
            assert_eq!(at, start);
            *receipt
        }
        Shown::Faulty(evidence) => panic!("{evidence:?}"),
    }
}

/// Plays about a receipt's claim until nobody can go on. Says who has won, or is stuck.
async fn winner(engine: Arc<dyn Engine>, (claimed, defended): (Receipt, Receipt)) -> Side {
    let pool = EnginePool::new(PoolConfig { threads: 1, queue: 1 }).unwrap();
    let ticket = pool.work(Priority::Urgent, move |sink| {
        let claim = claimed.claim().unwrap();
        let bytes = Claimed::whole(claimed.claimed_bytes(), claim.units);
        let trace = engine.clone().trace(claimed.job(), bytes, Box::new(quiet))?;
        let layout = trace.layout().clone();
        let weights = engine.manifest().exact.as_ref().unwrap().weight_root;
        let referee = CellReferee::new(&layout, weights);
        let mut record = sample::trust_records::disputes().remove(0);
        record.game = Game::new(claim.trace_root, &layout, Clocks::equal(100)).unwrap();
        let (mut one, mut other) = (View::default(), View::default());
        while let Some(side) = record.game.to_move() {
            let (view, of) = match side {
                Side::Defender => (&mut one, &defended),
                Side::Challenger => (&mut other, &claimed),
            };
            let played = view.play((engine.clone(), of), (side, &record), sink);
            let Ok(played) = played else {
                return Ok(side.other());
            };
            if record.game.step(side, played, &layout, &referee).is_err() {
                return Ok(side.other());
            }
        }
        Ok(record.game.outcome().unwrap().winner)
    });
    ticket.unwrap().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_token_loses_and_a_right_answer_is_defended() {
    let stage = Stage::new().await;
    let (met, missed) = stage.met_and_missed();
    let provider = stage.commit_with_lie_at(met).await;
    let engine: Arc<dyn Engine> = stage.world.decoder.clone();

    let honest = receipt(&stage, &provider, missed);
    assert_eq!(
        winner(engine.clone(), (honest.clone(), honest)).await,
        Side::Defender
    );

    // It has the trace of the right answer, and stands by a wrong one with it.
    let lie = receipt(&stage, &provider, met);
    let mut right = lie.clone();
    let of = stage.receipts().swap_remove(met as usize);
    right.output = [&[0; 4][..], &of.said].concat();
    right.batched.statement = of.statement;
    assert_eq!(winner(engine, (lie, right)).await, Side::Challenger);
}
