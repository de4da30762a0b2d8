# Codex, events as JSON lines. What contains it is the harness; by default its own sandbox is off, which would hide the memory's socket.
export CODEX_HOME="$HOME/.codex"
mkdir -p "$CODEX_HOME"
flags="--sandbox $SANDBOX"
[ "$SANDBOX" = danger-full-access ] && flags=--dangerously-bypass-approvals-and-sandbox
watched '"type": *"turn.completed"' codex exec --json --skip-git-repo-check $flags -
