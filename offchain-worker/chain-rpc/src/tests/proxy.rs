//! A way to a node that can be cut.

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::node::Node;

pub struct Proxy {
    pub url: String,
    cut: watch::Sender<()>,
}

impl Proxy {
    pub async fn to(node: &Node) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}", listener.local_addr().unwrap());
        let address = node.url.trim_start_matches("ws://").to_string();
        let (cut, watch) = watch::channel(());
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut far = TcpStream::connect(&address).await.unwrap();
                let mut cut = watch.clone();
                cut.mark_unchanged();
                tokio::spawn(async move {
                    tokio::select! {
                        _ = copy_bidirectional(&mut near, &mut far) => {}
                        Ok(()) = cut.changed() => {}
                    }
                });
            }
        });
        Self { url, cut }
    }

    /// Ends the connections there are; new ones can be made.
    pub fn cut(&self) {
        self.cut.send_replace(());
    }
}
