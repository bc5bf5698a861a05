//! `surety provider drain`: tells what is still open, and ends the worker when nothing is.

use serde::Serialize;
use surety_client::words::left;
use surety_host::{Duty, Open, Still};
use surety_provider_calls::Owed;
use tokio::sync::watch;

use crate::{
    error::{CliError, Result},
    output::Output,
};

/// Printed when nothing is open any more.
#[derive(Serialize)]
struct Drained {
    state: &'static str,
}

/// Tells what is still open whenever that changes, and stops the worker when nothing is.
pub(super) async fn watch(
    out: Output,
    (mut still, mut owed): (watch::Receiver<Still>, Option<watch::Receiver<Option<Owed>>>),
    stop: watch::Sender<bool>,
) {
    let mut told = Vec::new();
    loop {
        let now = still.borrow_and_update().clone();
        let over_channels = match &mut owed {
            Some(owed) => owed.borrow_and_update().clone(),
            None => Some(Owed::default()),
        };
        if is_done(&now, over_channels.as_ref()) {
            // Nobody listens only when the worker has ended by itself.
            stop.send(true).ok();
            return;
        }
        for text in news(&mut told, &now, over_channels.as_ref()) {
            out.step(&text);
        }
        let over_channels = async {
            match &mut owed {
                Some(owed) => owed.changed().await,
                None => std::future::pending().await,
            }
        };
        let changed = tokio::select! {
            changed = still.changed() => changed,
            changed = over_channels => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

fn is_done(still: &Still, owed: Option<&Owed>) -> bool {
    still.is_done() && owed.is_some_and(Owed::is_nothing)
}

/// How it ended.
///
/// # Errors
/// When it was stopped while something was open.
pub(super) fn ended(out: Output, still: &Still, owed: Option<&Owed>) -> Result<()> {
    if is_done(still, owed) {
        let drained = Drained { state: "drained" };
        return out.result(&drained, || {
            "nothing is open any more: surety provider up takes new work again, surety provider leave takes the offer \
             back, and surety provider stand --cap 0, with the stash's key, keeps new channels away"
                .into()
        });
    }
    let over_channels = owed.and_then(over_channels);
    let open = match still.open.len() {
        0 if over_channels.is_some() => over_channels.unwrap_or_default(),
        0 => "the chain did not yet show that nothing is open".into(),
        tasks => {
            let more = over_channels.map(|open| format!("; {open}"));
            format!("open yet: {tasks} tasks{}", more.unwrap_or_default())
        }
    };
    Err(CliError::Interrupted(format!(
        "{open}; go on soon with surety provider drain or surety provider up: deadlines do not wait"
    )))
}

/// What was not told before. `told` is what is known by then, without the time that is left.
fn news(told: &mut Vec<String>, now: &Still, owed: Option<&Owed>) -> Vec<String> {
    let texts = |clock| -> Vec<String> {
        let open = now.open.iter().map(|open| open_text(open, clock));
        open.chain(rest_text(now))
            .chain(owed.and_then(over_channels))
            .collect()
    };
    let known_by = texts(None);
    let new = known_by
        .iter()
        .zip(texts(now.clock))
        .filter(|(known_by, _)| !told.contains(known_by))
        .map(|(_, text)| text)
        .collect();
    *told = known_by;
    new
}

/// What is open over payment channels.
fn over_channels(owed: &Owed) -> Option<String> {
    (!owed.is_nothing()).then(|| format!("over payment channels: {owed}"))
}

/// What is waited for where the chain shows no task of ours.
fn rest_text(now: &Still) -> Option<String> {
    now.clock?;
    if now.unread > 0 {
        return Some(format!(
            "{} tasks on the chain cannot be read and may be this provider's: a newer surety may read them",
            now.unread
        ));
    }
    (now.open.is_empty() && now.kept > 0)
        .then(|| "the chain shows nothing open; waiting a minute or two until that is certain".into())
}

fn open_text(open: &Open, clock: Option<u32>) -> String {
    let what = match &open.duty {
        Duty::Bid => "its bid may win".into(),
        Duty::Reserve => "in reserve, for whoever delivers nothing".into(),
        Duty::Compute => "its result is to be computed and committed to".into(),
        Duty::Reveal => "its result is committed to, and is to be opened".into(),
        Duty::Supply => "data is to be shown on the chain".into(),
        Duty::Disputes(disputes) => {
            let numbers: Vec<String> = disputes.iter().map(ToString::to_string).collect();
            format!(
                "dispute {} is being played: surety dispute show",
                numbers.join(", ")
            )
        }
        Duty::Wait => "nothing to do, unless somebody challenges its result or demands data".into(),
    };
    let time = open
        .until
        .map(|until| format!("; this part lasts {}", left(until, clock)));
    format!("task {}: {what}{}", open.task, time.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn open(duty: Duty, until: Option<u32>) -> Open {
        Open { task: 7, duty, until }
    }

    fn still(clock: u32, open: Vec<Open>) -> Still {
        Still {
            clock: Some(clock),
            kept: open.len(),
            open,
            unread: 0,
        }
    }

    #[test]
    fn what_is_open_is_told_once_and_again_when_it_changes() {
        let mut told = Vec::new();
        let computing = |clock| still(clock, vec![open(Duty::Compute, Some(100))]);
        assert_eq!(
            news(&mut told, &Still::default(), None),
            [""; 0],
            "nothing is known yet"
        );
        assert_eq!(
            news(&mut told, &computing(70), None),
            ["task 7: its result is to be computed and committed to; this part lasts for about 60 s"]
        );
        assert_eq!(
            news(&mut told, &computing(80), None),
            [""; 0],
            "only the clock has moved"
        );
        let disputed = still(90, vec![open(Duty::Disputes(vec![3, 4]), None)]);
        let texts = news(&mut told, &disputed, None);
        assert!(texts[0].contains("dispute 3, 4"), "{texts:?}");
        let mut gone = still(95, Vec::new());
        gone.kept = 1;
        assert!(news(&mut told, &gone, None)[0].contains("until that is certain"));
    }

    #[tokio::test]
    async fn the_worker_is_stopped_when_nothing_is_open_and_not_before() {
        let (seen, still_seen) = watch::channel(Still::default());
        let (owed, owed_seen) = watch::channel(None);
        let (stop, mut stopped) = watch::channel(false);
        let watching = tokio::spawn(watch(Output::new(true), (still_seen, Some(owed_seen)), stop));
        let mut open_yet = still(9, Vec::new());
        open_yet.kept = 1;
        seen.send_replace(open_yet);
        tokio::task::yield_now().await;
        assert!(!*stopped.borrow());
        seen.send_replace(still(10, Vec::new()));
        let demanded = Owed {
            demands: 1,
            ..Owed::default()
        };
        for open in [None, Some(demanded)] {
            owed.send_replace(open);
            tokio::task::yield_now().await;
            assert!(!*stopped.borrow(), "something is open over channels");
        }
        owed.send_replace(Some(Owed::default()));
        stopped.wait_for(|stop| *stop).await.unwrap();
        watching.await.unwrap();
    }

    #[test]
    fn who_was_stopped_before_that_is_told_to_go_on_and_sees_it_in_the_exit_code() {
        let error = ended(Output::new(true), &still(9, vec![open(Duty::Wait, None)]), None).unwrap_err();
        assert_eq!(error.exit_code(), 1);
        assert!(error.to_string().contains("1 tasks"), "{error}");
        let batched = Owed {
            batches: 2,
            ..Owed::default()
        };
        let error = ended(Output::new(true), &still(9, Vec::new()), Some(&batched)).unwrap_err();
        assert!(
            error.to_string().contains("2 batches that are not final"),
            "{error}"
        );
        ended(Output::new(true), &still(9, Vec::new()), Some(&Owed::default())).unwrap();
    }
}
