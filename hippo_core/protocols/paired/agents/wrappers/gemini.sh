# Gemini CLI, one prompt from standard input. The workspace is disposable and contained, so nothing is asked.
exec gemini --yolo --output-format json
