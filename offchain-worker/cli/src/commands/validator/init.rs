//! `surety validator init`: from a new machine to one whose operator can join.

use std::path::Path;

use serde::Serialize;
use surety_chain_client::{AccountId, address};
use surety_chain_rpc::NodeRpc;

use super::keys::{self, Made};
use crate::{
    args::ValidatorInitArgs,
    commands::{Context, ask::Ask, init},
    error::{CliError, Result},
    keys::{check_mode, create_node_key},
    output::{Output, table},
};

/// How a machine starts the node, with the places of the chain's specification, the node's folder and its
/// key.
const UNIT: &str = "\
[Unit]
Description=Surety validator node
After=network-online.target
Wants=network-online.target

[Service]
User=surety
ExecStart=/usr/local/bin/surety-node --chain {chain} --base-path {base} --validator{key} --name %H
StateDirectory=surety/node
StateDirectoryMode=0700
Restart=on-failure
RestartSec=5
LimitNOFILE=16384
NoNewPrivileges=yes
PrivateTmp=yes
ProtectSystem=strict
ProtectHome=yes

[Install]
WantedBy=multi-user.target
";

/// What there is now.
#[derive(Serialize)]
struct Ready {
    operator: String,
    operator_key: String,
    node_key: String,
    /// Keys that the node has made; nothing while it does not answer.
    session_keys: Option<String>,
    session_keys_file: String,
    unit: String,
    next: &'static str,
}

pub(super) async fn run(context: &Context, args: &ValidatorInitArgs) -> Result<()> {
    let url = keys::own_url(context)?;
    let home = context.home()?;
    let key_file = &context.config.key_file;
    let operator = init::key(context, key_file, "operator, whose stake answers for the node")?;
    let operator = operator.signer.account().clone();
    let node_key = home.join("node.key");
    match node_key.exists() {
        true => check_mode(&node_key)?,
        false => create_node_key(&node_key)?,
    }
    let made = match NodeRpc::connect(&url).await {
        Ok(node) => Some(session_keys(context.out, (&url, &node), home, &operator).await?),
        Err(fault) => {
            context.out.step(&format!("{url}: {fault}"));
            None
        }
    };
    let ready = Ready {
        operator: address(&operator),
        operator_key: key_file.display().to_string(),
        node_key: node_key.display().to_string(),
        session_keys: made.as_ref().map(|made| keys::text(&made.keys)),
        session_keys_file: keys::file(home).display().to_string(),
        unit: unit(args, &format!(" --node-key-file {}", node_key.display())),
        next: match made {
            Some(_) => "surety validator join --bond AMOUNT",
            None => "start the node, and run surety validator init again",
        },
    };
    context.out.result(&ready, || ready.text())
}

fn unit(args: &ValidatorInitArgs, key: &str) -> String {
    UNIT.replace("{chain}", &args.chain.display().to_string())
        .replace("{base}", &args.base_path.display().to_string())
        .replace("{key}", key)
}

/// The keys that were made before, where the node has them, or new ones.
async fn session_keys(
    out: Output,
    (url, node): (&str, &dyn Ask),
    home: &Path,
    operator: &AccountId,
) -> Result<Made> {
    let fault = |source| CliError::Node {
        url: url.to_owned(),
        source,
    };
    if let Some(made) = keys::read(home)?
        && made.operator == *operator
        && keys::has(node, &made.keys).await.map_err(fault)?
    {
        out.step("the node has the session keys that it made before: they stay");
        return Ok(made);
    }
    let made = keys::made_by(node, operator).await.map_err(fault)?;
    keys::write(home, &made)?;
    out.step(
        "the node has made session keys, and keeps their secrets in its keystore: copy that to a safe place",
    );
    Ok(made)
}

impl Ready {
    fn text(&self) -> String {
        let mut rows = table(["operator", &self.operator]);
        rows.add_row(["its key", &format!("{}: keep it elsewhere", self.operator_key)]);
        rows.add_row(["node key", &self.node_key]);
        let none = "none yet: no node answers";
        rows.add_row(["session keys", self.session_keys.as_deref().unwrap_or(none)]);
        if self.session_keys.is_some() {
            rows.add_row(["with their proof in", &self.session_keys_file]);
        }
        rows.add_row(["next", self.next]);
        format!(
            "{rows}\n\nthe node, as /etc/systemd/system/surety-node.service:\n\n{}",
            self.unit
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::PathBuf;

    use surety_chain_client::Signer;

    use super::{super::keys::tests::Node, *};

    #[test]
    fn the_unit_is_that_of_the_documentation_with_the_nodes_key() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/systemd/surety-node.service"
        );
        let args = ValidatorInitArgs {
            chain: PathBuf::from("/etc/surety/chain.json"),
            base_path: PathBuf::from("/var/lib/surety/node"),
        };
        assert_eq!(unit(&args, ""), std::fs::read_to_string(path).unwrap());
        assert!(unit(&args, " --node-key-file /k").contains("--validator --node-key-file /k --name"));
    }

    #[tokio::test]
    async fn keys_are_made_once_for_an_operator_and_again_where_the_node_lost_them() {
        let (node, home) = (Node::default(), tempfile::tempdir().unwrap());
        let [alice, bob] = ["//Alice", "//Bob"].map(|uri| Signer::from_uri(uri).unwrap().account().clone());
        let made = |of: AccountId| {
            let (node, home) = (&node, home.path());
            async move {
                let made = session_keys(Output::new(true), ("ws://127.0.0.1:9", node), home, &of).await;
                assert_eq!(made.unwrap().operator, of);
                node.asked.lock().unwrap().len()
            }
        };
        assert_eq!(made(alice.clone()).await, 1);
        assert_eq!(made(alice.clone()).await, 1);
        node.made.lock().unwrap().clear();
        assert_eq!(made(alice).await, 2);
        // Their proof would not hold for somebody else.
        assert_eq!(made(bob).await, 3);
    }
}
