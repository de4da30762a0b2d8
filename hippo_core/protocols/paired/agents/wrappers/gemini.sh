# Gemini CLI. The workspace is disposable and contained, so by default nothing is asked.
watched '"response":' gemini --approval-mode "$SANDBOX" --output-format json
