# Claude Code, one prompt from standard input. The workspace is disposable and contained, so nothing is asked.
exec claude -p --output-format json --dangerously-skip-permissions
