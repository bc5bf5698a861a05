//! `surety validator init`: from a new machine to one whose operator can join.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

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
/// What it writes to is there for it alone: nothing else can be written, and homes cannot be seen.
const UNIT: &str = "\
[Unit]
Description=Surety validator node
After=network-online.target
Wants=network-online.target

[Service]
User=surety
ExecStart=/usr/local/bin/surety-node --chain {chain} --base-path {base} --validator{key} --name %H
{folder}
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

/// Whom the node runs as, and where the service manager makes folders for that.
const SERVICE_USER: &str = "surety";
const STATE: &str = "/var/lib";
/// Folders that the node started by it finds empty: `ProtectHome` and `PrivateTmp`.
const HIDDEN: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

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
    /// Why a node that is started by it would not find what it needs.
    unit_faults: Vec<String>,
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
        unit_faults: faults(
            args,
            &node_key,
            &fs::read_to_string("/etc/passwd").unwrap_or_default(),
        ),
        next: match made {
            Some(_) => "surety validator join --bond AMOUNT",
            None => "start the node, and run surety validator init again",
        },
    };
    context.out.result(&ready, || ready.text())
}

fn unit(args: &ValidatorInitArgs, key: &str) -> String {
    let base = args.base_path.display();
    let folder = match args.base_path.strip_prefix(STATE) {
        Ok(below) => format!("StateDirectory={}\nStateDirectoryMode=0700", below.display()),
        Err(_) => format!("ReadWritePaths={base}"),
    };
    UNIT.replace("{chain}", &args.chain.display().to_string())
        .replace("{base}", &base.to_string())
        .replace("{key}", key)
        .replace("{folder}", &folder)
}

/// What keeps the unit from starting the node. `users` is the machine's list of them.
fn faults(args: &ValidatorInitArgs, node_key: &Path, users: &str) -> Vec<String> {
    let mut faults = Vec::new();
    // A chain that the node knows by a name is no file.
    let chain = Some(args.chain.as_path()).filter(|chain| chain.components().count() > 1);
    for (what, path) in [
        ("the chain specification", chain),
        ("the node's folder", Some(args.base_path.as_path())),
        ("the node key", Some(node_key)),
    ] {
        let Some(path) = path else { continue };
        if path.is_relative() {
            faults.push(format!(
                "{what}, {}, has to be named by its whole path",
                path.display()
            ));
        } else if HIDDEN.iter().any(|hidden| path.starts_with(hidden)) {
            faults.push(format!(
                "{what}, {}, is where the unit lets the node see nothing: have it elsewhere, below {STATE}/{SERVICE_USER} say",
                path.display()
            ));
        }
    }
    let owner = fs::metadata(node_key).map(|file| file.uid());
    match (uid_of(SERVICE_USER, users), owner) {
        (None, _) => faults.push(format!(
            "there is no user {SERVICE_USER}: make it with useradd --system {SERVICE_USER}, or name another in the unit"
        )),
        (Some(user), Ok(owner)) if owner != user => faults.push(format!(
            "the node key {} is not {SERVICE_USER}'s, who alone could read it: run surety validator init as that user",
            node_key.display()
        )),
        _ => {}
    }
    faults
}

/// The number of a user, by lines like `name:x:1000:…`.
fn uid_of(name: &str, users: &str) -> Option<u32> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
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
        let faults: String = self
            .unit_faults
            .iter()
            .map(|fault| format!("\n- {fault}"))
            .collect();
        let but = match faults.as_str() {
            "" => String::new(),
            _ => format!("\nthe node does not start by this unit yet:{faults}\n"),
        };
        format!(
            "{rows}\n\nthe node, as /etc/systemd/system/surety-node.service:\n\n{}{but}",
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
        let args = args("/etc/surety/chain.json", "/var/lib/surety/node");
        assert_eq!(unit(&args, ""), fs::read_to_string(path).unwrap());
        assert!(unit(&args, " --node-key-file /k").contains("--validator --node-key-file /k --name"));
    }

    fn args(chain: &str, base: &str) -> ValidatorInitArgs {
        ValidatorInitArgs {
            chain: PathBuf::from(chain),
            base_path: PathBuf::from(base),
        }
    }

    #[test]
    fn the_unit_can_write_to_the_nodes_folder_wherever_it_is() {
        let folder = |base| {
            let unit = unit(&args("/etc/surety/chain.json", base), "");
            let lines = unit.lines().map(str::to_owned);
            let of_folder = |line: &String| line.starts_with("StateDirectory=") || line.contains("Paths=");
            lines.filter(of_folder).collect::<Vec<_>>()
        };
        assert_eq!(folder("/var/lib/surety/node"), ["StateDirectory=surety/node"]);
        assert_eq!(folder("/var/lib/other"), ["StateDirectory=other"]);
        assert_eq!(folder("/srv/node"), ["ReadWritePaths=/srv/node"]);
    }

    #[test]
    fn a_unit_whose_node_would_not_find_its_files_is_said_to_be_one() {
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("node.key");
        fs::write(&key, "").unwrap();
        let mine = fs::metadata(&key).unwrap().uid();
        let users = |uid: u32| {
            format!("root:x:0:0::/root:/bin/sh\nsurety:x:{uid}:{uid}::/var/lib/surety:/bin/false\n")
        };
        let faults = |chain, base, key: &Path, users: &str| faults(&args(chain, base), key, users);
        let (chain, base) = ("/etc/surety/chain.json", "/var/lib/surety/node");
        let away = Path::new("/var/lib/surety/validator/node.key");
        assert!(faults(chain, base, away, &users(mine)).is_empty());

        // As with the home folder that is taken when none is named.
        let home = Path::new("/home/me/.local/share/surety/node.key");
        let [one] = faults(chain, base, home, &users(mine)).try_into().unwrap();
        assert!(
            one.contains("the node key, /home/me") && one.contains("below /var/lib/surety"),
            "{one}"
        );
        let hidden = faults("./chain.json", "/root/node", away, &users(mine));
        assert!(
            hidden[0].contains("whole path") && hidden[1].contains("the node's folder"),
            "{hidden:?}"
        );
        assert!(faults("testnet", base, away, &users(mine)).is_empty());

        // The key that is there is another user's, or nobody's.
        let said = faults(chain, base, &key, &users(mine + 1));
        assert!(
            said.iter()
                .any(|fault| fault.contains("run surety validator init as that user")),
            "{said:?}"
        );
        let said = faults(chain, base, away, "root:x:0:0::/root:/bin/sh\n");
        assert!(said[0].contains("useradd --system surety"), "{said:?}");
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
