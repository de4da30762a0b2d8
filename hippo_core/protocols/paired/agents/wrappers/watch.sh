# `watched FINAL COMMAND`: the prompt to an agent, its output passed on; ends with it, or once its output holds FINAL, the mark of a final
# message, and has not grown for eight looks: some agents do not end by themselves. The harness kills what is left.
watched() {
    final=$1 out=$TMPDIR/agent.out status=$TMPDIR/agent.status size= quiet=0
    shift
    : > "$out" && rm -f "$status"
    { "$@" < "${0%/*}/prompt.md"; echo $? > "$status"; } | tee "$out" &
    while [ "$quiet" -lt 8 ] && kill -0 $! 2> /dev/null; do
        sleep "${WATCH_S:-1}"
        before=$size size=$(wc -c < "$out")
        if [ "$size" = "$before" ] && grep -q "$final" "$out"; then quiet=$((quiet + 1)); else quiet=0; fi
    done
    exit "$(cat "$status" 2> /dev/null || echo $((quiet < 8)))"
}

