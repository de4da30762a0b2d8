# Claude Code. The workspace is disposable and contained, so by default nothing is asked.
watched '"type": *"result"' claude -p --output-format json --permission-mode "$SANDBOX"
