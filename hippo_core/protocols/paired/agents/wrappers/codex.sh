# Codex, one prompt from standard input, events as JSON lines. What contains it is the harness; its own sandbox would hide the memory's socket.
export CODEX_HOME="$HOME/.codex"
mkdir -p "$CODEX_HOME"
exec codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -
